# As program.py. Standard output has no buffer.
log <- file("log", "w")
for (i in 0:1) {
  cat("out ", i, "\n", sep = "")
  writeLines(paste("log", i), log)
}
invisible(file.create("ready"))
if (length(commandArgs(TRUE))) system(paste("kill -9", Sys.getpid()))
Sys.sleep(60)
