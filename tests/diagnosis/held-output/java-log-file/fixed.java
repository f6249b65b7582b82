// A service that logs through a PrintWriter with autoflush.
import java.io.*;

class fixed {
    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in));
        var log = new PrintWriter(new FileWriter("service.log"), true);
        for (String line; (line = in.readLine()) != null;)
            log.println("request " + line);
        log.close();
    }
}
