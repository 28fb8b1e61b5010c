// Threads, locks, streams, exceptions (also implicit null checks, which are faults), collections,
// garbage, string building: enough calls for the compilers to start.
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

public class Work {
    interface Shape { double area(); }
    record Square(double side) implements Shape { public double area() { return side * side; } }
    record Disc(double radius) implements Shape { public double area() { return 3 * radius * radius; } }

    static int counter;
    static synchronized void bump() { counter++; }

    static long collatz(long n) { long steps = 0; while (n != 1) { n = n % 2 == 0 ? n / 2 : 3 * n + 1; steps++; } return steps; }

    public static void main(String[] arguments) throws Exception {
        int scale = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 100;
        long most = 0;
        for (int i = 1; i < scale * 1000; i++) most = Math.max(most, collatz(i));
        System.out.println("collatz " + most);
        List<Shape> shapes = new ArrayList<>();
        for (int i = 0; i < 1000; i++) shapes.add(i % 2 == 0 ? new Square(i) : new Disc(i));
        System.out.println("area " + shapes.stream().mapToDouble(Shape::area).sum());
        Thread[] threads = new Thread[4];
        for (int t = 0; t < threads.length; t++) { threads[t] = new Thread(() -> { for (int i = 0; i < 5000; i++) bump(); }); threads[t].start(); }
        for (Thread thread : threads) thread.join();
        System.out.println("counter " + counter);
        ExecutorService pool = Executors.newFixedThreadPool(3);
        List<Future<Integer>> futures = new ArrayList<>();
        for (int i = 0; i < 50; i++) { final int n = i; futures.add(pool.submit(() -> n * n)); }
        int sum = 0;
        for (Future<Integer> future : futures) sum += future.get();
        pool.shutdown();
        System.out.println("futures " + sum);
        int nulls = 0;
        String[] texts = new String[3];
        for (int i = 0; i < 20000; i++) { try { nulls += texts[i % 3].length(); } catch (NullPointerException e) { nulls--; } }
        System.out.println("nulls " + nulls);
        Map<String, List<byte[]>> garbage = new HashMap<>();
        for (int i = 0; i < 20000; i++) { garbage.computeIfAbsent("k" + i % 50, k -> new LinkedList<>()).add(new byte[500]); if (i % 1000 == 999) garbage.clear(); }
        System.gc();
        System.out.println(new TreeMap<>(IntStream.range(0, 1000).boxed().collect(Collectors.groupingBy(n -> n % 7, Collectors.counting()))));
        try { deep(0); } catch (StackOverflowError e) { System.out.println("overflow"); }
        System.out.println(new StringBuilder("hello").reverse() + " " + String.format("%.4f", Math.sin(1)));
        Process child = new ProcessBuilder("echo", "child").start();
        System.out.println(new String(child.getInputStream().readAllBytes()).trim() + " " + child.waitFor());
    }

    static int deep(int n) { return deep(n + 1) + 1; }
}
