let () =
  let log = open_out_gen [ Open_wronly; Open_creat; Open_append ] 0o644 "worker.log" in
  for job = 1 to 1000 do
    Printf.fprintf log "job %d finished\n" job;
    flush log;
    Unix.sleepf 0.02
  done;
  close_out log
