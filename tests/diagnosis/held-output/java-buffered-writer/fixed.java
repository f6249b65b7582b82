// A filter that prints through a BufferedWriter and flushes it after each line.
import java.io.*;

class fixed {
    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in));
        var out = new PrintWriter(new BufferedWriter(new FileWriter(FileDescriptor.out)));
        for (String line; (line = in.readLine()) != null;) {
            out.println("seen " + line);
            out.flush();
        }
        out.close();
    }
}
