import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.BinaryDocValuesField;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogDocMergePolicy;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopScoreDocCollector;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.Version;

/**
 * Lucene's core for `benchmarks/compare/lucene.py`: a long-lived process that reads commands from stdin, so that its rounds alternate with those of other engines.
 *
 * <pre>
 * version                                                 -> the Lucene version
 * build TEXTS INDEX whitespace|standard|english THREADS ids|none   -> wall and CPU of all threads in ns, without and with the merge into one segment
 * open INDEX QUERIES                                      -> the number of documents
 * run K COUNT HITS|-                                      -> wall in ns, then thread CPU in ns of each of the first COUNT queries; documents and scores go to the file HITS
 * </pre>
 *
 * Words are tab-separated; each answer is one line. TEXTS has a document a line, QUERIES a query a line, its terms between spaces.
 */
public final class LuceneBench {
  private static final String FIELD = "contents";
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  private static IndexSearcher searcher;
  private static final List<Query> queries = new ArrayList<>();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      String[] words = line.split("\t");
      switch (words[0]) {
        case "version" -> out.println(Version.LATEST);
        case "build" -> out.println(build(Path.of(words[1]), Path.of(words[2]), analyzer(words[3]), Integer.parseInt(words[4]), words[5].equals("ids")));
        case "open" -> out.println(open(Path.of(words[1]), Path.of(words[2])));
        case "run" -> out.println(run(Integer.parseInt(words[1]), Integer.parseInt(words[2]), words[3]));
        default -> throw new IllegalArgumentException(line);
      }
    }
  }

  private static Analyzer analyzer(String name) {
    return switch (name) {
      case "whitespace" -> new WhitespaceAnalyzer();
      case "standard" -> new StandardAnalyzer();
      case "english" -> new EnglishAnalyzer();
      default -> throw new IllegalArgumentException(name);
    };
  }

  private static String build(Path texts, Path folder, Analyzer analyzer, int threads, boolean ids) throws Exception {
    List<String> lines = Files.readAllLines(texts);
    // No positions: the other engines keep none either.
    FieldType type = new FieldType();
    type.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    type.setTokenized(true);
    type.freeze();
    // With one thread, and segments merged in their order, Lucene's numbers of documents are ours.
    IndexWriterConfig config = new IndexWriterConfig(analyzer).setSimilarity(similarity()).setRAMBufferSizeMB(1024).setMergePolicy(new LogDocMergePolicy());
    long began = System.nanoTime(), cpu = processCpu();
    try (Directory directory = FSDirectory.open(folder); IndexWriter writer = new IndexWriter(directory, config)) {
      List<Thread> workers = new ArrayList<>();
      for (int t = 0; t < threads; t++) {
        int first = t;
        workers.add(new Thread(() -> {
          try {
            for (int i = first; i < lines.size(); i += threads) {
              Document document = new Document();
              document.add(new Field(FIELD, lines.get(i), type));
              if (ids) {
                // As Anserini names its documents, and breaks ties among them.
                document.add(new StringField("id", Integer.toString(i), Field.Store.YES));
                document.add(new BinaryDocValuesField("id", new BytesRef(Integer.toString(i))));
              }
              writer.addDocument(document);
            }
          } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
          }
        }));
      }
      for (Thread worker : workers) worker.start();
      for (Thread worker : workers) worker.join();
      writer.commit();
      String unmerged = (System.nanoTime() - began) + "\t" + (processCpu() - cpu);
      writer.forceMerge(1);
      writer.commit();
      return unmerged + "\t" + (System.nanoTime() - began) + "\t" + (processCpu() - cpu);
    }
  }

  private static int open(Path folder, Path asked) throws Exception {
    IndexReader reader = DirectoryReader.open(FSDirectory.open(folder));
    searcher = new IndexSearcher(reader);
    searcher.setSimilarity(similarity());
    queries.clear();
    for (String line : Files.readAllLines(asked)) {
      BooleanQuery.Builder query = new BooleanQuery.Builder();
      for (String term : line.split(" ")) query.add(new TermQuery(new Term(FIELD, term)), BooleanClause.Occur.SHOULD);
      queries.add(query.build());
    }
    return reader.maxDoc();
  }

  private static String run(int k, int count, String hitsFile) throws Exception {
    StringBuilder answer = new StringBuilder();
    TopDocs[] found = new TopDocs[count];
    long began = System.nanoTime();
    for (int i = 0; i < count; i++) {
      long start = THREADS.getCurrentThreadCpuTime();
      // Total hits are counted no further than to k: from there on blocks are skipped.
      found[i] = searcher.search(queries.get(i), TopScoreDocCollector.createSharedManager(k, null, k));
      answer.append('\t').append(THREADS.getCurrentThreadCpuTime() - start);
    }
    answer.insert(0, System.nanoTime() - began);
    if (!hitsFile.equals("-")) {
      try (PrintWriter out = new PrintWriter(hitsFile, StandardCharsets.UTF_8)) {
        for (TopDocs hits : found) {
          StringBuilder line = new StringBuilder();
          for (ScoreDoc hit : hits.scoreDocs) line.append(hit.doc).append(' ').append(hit.score).append(' ');
          out.println(line);
        }
      }
    }
    return answer.toString();
  }

  private static BM25Similarity similarity() {
    return new BM25Similarity(0.9f, 0.4f);
  }

  private static long processCpu() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }
}
