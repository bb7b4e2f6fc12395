import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.xml.transform.Templates;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;

/** One measurement of Xalan's XSLTC on a warm JVM: Xsltc STYLESHEET SOURCE MILLISECONDS; the first half warms up. */
public class Xsltc {
    public static void main(String[] arguments) throws Exception {
        Templates templates = new org.apache.xalan.xsltc.trax.TransformerFactoryImpl()
                .newTemplates(new StreamSource(new File(arguments[0])));
        byte[] source = Files.readAllBytes(Path.of(arguments[1]));
        long half = Long.parseLong(arguments[2]) * 500_000;
        long end = System.nanoTime() + half;
        while (System.nanoTime() < end) once(templates, source);
        var threads = ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadCpuTime();
        long runs = 0;
        end = System.nanoTime() + half;
        while (System.nanoTime() < end) {
            once(templates, source);
            runs++;
        }
        System.out.printf("%.3f%n", (threads.getCurrentThreadCpuTime() - before) / 1000.0 / runs);
    }

    private static void once(Templates templates, byte[] source) throws Exception {
        var result = new ByteArrayOutputStream(source.length + 256);
        templates.newTransformer().transform(new StreamSource(new ByteArrayInputStream(source)), new StreamResult(result));
    }
}
