// A relay that flushes its BufferedOutputStream after each line.
import java.io.*;
import java.nio.charset.StandardCharsets;

class fixed {
    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in));
        var out = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out));
        for (String line; (line = in.readLine()) != null;) {
            out.write(("relayed " + line + "\n").getBytes(StandardCharsets.UTF_8));
            out.flush();
        }
        out.close();
    }
}
