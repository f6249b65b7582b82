// A filter that prints through a BufferedWriter without autoflush.
import java.io.*;

class broken {
    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in));
        var out = new PrintWriter(new BufferedWriter(new FileWriter(FileDescriptor.out)));
        for (String line; (line = in.readLine()) != null;)
            out.println("seen " + line);
        out.close();
    }
}
