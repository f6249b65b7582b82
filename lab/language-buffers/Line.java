/* Prints a line and waits. */
class Line {
    public static void main(String[] arguments) throws InterruptedException {
        System.out.println("line");
        Thread.sleep(60000);
    }
}
