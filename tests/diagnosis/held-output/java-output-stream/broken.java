// A relay that never flushes its BufferedOutputStream.
import java.io.*;
import java.nio.charset.StandardCharsets;

class broken {
    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in));
        var out = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out));
        for (String line; (line = in.readLine()) != null;) {
            out.write(("relayed " + line + "\n").getBytes(StandardCharsets.UTF_8));
        }
        out.close();
    }
}
