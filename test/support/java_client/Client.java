// GETs a URL several times, each on a connection of its own, with one cache of TLS sessions. Prints a line of JSON for each:
// {"status": 200, "protocol": "HTTP_1_1", "version": "TLSv1.3", "body": 5, "digest": "..."}

import java.io.FileInputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.HexFormat;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

class Client {
  static SSLContext trusting(String file) throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (FileInputStream in = new FileInputStream(file)) {
      store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
    }
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    return context;
  }

  static String ask(SSLContext context, String version, URI uri) throws Exception {
    SSLParameters parameters = new SSLParameters();
    parameters.setProtocols(new String[] {version});
    HttpClient client = HttpClient.newBuilder().sslContext(context).sslParameters(parameters)
        .connectTimeout(Duration.ofSeconds(60)).build();
    HttpResponse<byte[]> response = client.send(HttpRequest.newBuilder(uri).timeout(Duration.ofSeconds(60)).build(),
        HttpResponse.BodyHandlers.ofByteArray());
    String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(response.body()));
    return String.format("{\"status\": %d, \"protocol\": \"%s\", \"version\": \"%s\", \"body\": %d, \"digest\": \"%s\"}",
        response.statusCode(), response.version(), response.sslSession().get().getProtocol(), response.body().length,
        digest);
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length != 4) {
      System.err.println("usage: java Client.java CA.pem TLSv1.2|TLSv1.3 TIMES URL");
      System.exit(2);
    }
    try {
      SSLContext context = trusting(arguments[0]);
      for (int left = Integer.parseInt(arguments[2]); left > 0; --left) {
        System.out.println(ask(context, arguments[1], URI.create(arguments[3])));
      }
    } catch (IOException error) {
      System.err.println(error);
      System.exit(1);
    }
    System.exit(0);  // connections that are kept do not hold it up
  }
}
