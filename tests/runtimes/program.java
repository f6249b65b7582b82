// As program.py. System.out has no buffer.
import java.io.BufferedWriter;
import java.io.FileWriter;
import java.nio.file.Files;
import java.nio.file.Path;

class Program {
    public static void main(String[] arguments) throws Exception {
        var log = new BufferedWriter(new FileWriter("log"));
        for (int i = 0; i < 2; i++) {
            System.out.println("out " + i);
            log.write("log " + i + "\n");
        }
        Files.createFile(Path.of("ready"));
        if (arguments.length > 0) {
            new ProcessBuilder("kill", "-9", "" + ProcessHandle.current().pid()).start().waitFor();
        }
        Thread.sleep(60000);
        log.flush();
    }
}
