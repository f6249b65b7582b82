import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;

class Broken {
    public static void main(String[] arguments) throws IOException {
        try (OutputStream out = new FileOutputStream("picture.pgm")) {
            out.write("P5 800 600 255\n".getBytes());
            for (int y = 0; y < 600; y++) {
                for (int x = 0; x < 800; x++) {
                    out.write((x ^ y) & 255);
                }
            }
        }
    }
}
