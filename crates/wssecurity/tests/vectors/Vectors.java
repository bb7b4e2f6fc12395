import org.apache.ws.security.*;
import org.apache.ws.security.components.crypto.*;
import org.apache.ws.security.message.*;
import org.apache.ws.security.message.token.*;
import org.w3c.dom.*;
import javax.xml.parsers.*;
import javax.xml.transform.*;
import javax.xml.transform.dom.*;
import javax.xml.transform.stream.*;
import java.io.*;
import java.util.*;
import java.nio.file.*;

public class Vectors {
  static final String ENV = "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:x=\"urn:example\"><s:Header/><s:Body><x:order number=\"7\"><x:item>tea &amp; caf\u00e9</x:item>\n  <x:item xml:lang=\"de\"/></x:order></s:Body></s:Envelope>";
  static Crypto crypto(String name) throws Exception {
    Properties p = new Properties();
    p.setProperty("org.apache.ws.security.crypto.provider", "org.apache.ws.security.components.crypto.Merlin");
    p.setProperty("org.apache.ws.security.crypto.merlin.keystore.type", "jks");
    p.setProperty("org.apache.ws.security.crypto.merlin.keystore.password", "password");
    p.setProperty("org.apache.ws.security.crypto.merlin.keystore.alias", name);
    p.setProperty("org.apache.ws.security.crypto.merlin.keystore.file", name + ".jks");
    return CryptoFactory.getInstance(p);
  }
  static Document parse(String text) throws Exception {
    DocumentBuilderFactory f = DocumentBuilderFactory.newInstance(); f.setNamespaceAware(true);
    return f.newDocumentBuilder().parse(new ByteArrayInputStream(text.getBytes("UTF-8")));
  }
  static void write(String name, Document d) throws Exception {
    Transformer t = TransformerFactory.newInstance().newTransformer();
    t.setOutputProperty(OutputKeys.OMIT_XML_DECLARATION, "yes");
    t.transform(new DOMSource(d), new StreamResult(new File(name)));
  }
  static List<WSEncryptionPart> parts(boolean ts, boolean body) {
    List<WSEncryptionPart> l = new ArrayList<WSEncryptionPart>();
    if (ts) l.add(new WSEncryptionPart("Timestamp", WSConstants.WSU_NS, ""));
    if (body) l.add(new WSEncryptionPart("Body", "http://schemas.xmlsoap.org/soap/envelope/", "Content"));
    return l;
  }
  static void asymmetric(String out, int sigRef, int encRef, String sigAlgo, String digest, String enc, String transport, boolean encrypt, boolean encryptSignature) throws Exception {
    Document d = parse(ENV);
    WSSecHeader h = new WSSecHeader(); h.insertSecurityHeader(d);
    WSSecTimestamp ts = new WSSecTimestamp(); ts.setTimeToLive(300); ts.build(d, h);
    WSSecSignature s = new WSSecSignature();
    s.setUserInfo("client", "password"); s.setKeyIdentifierType(sigRef); s.setSignatureAlgorithm(sigAlgo); s.setDigestAlgo(digest);
    s.setParts(parts(true, true)); s.build(d, crypto("client"), h);
    if (encrypt) {
      WSSecEncrypt e = new WSSecEncrypt();
      e.setUserInfo("service"); e.setKeyIdentifierType(encRef); e.setSymmetricEncAlgorithm(enc); e.setKeyEncAlgo(transport);
      List<WSEncryptionPart> p = parts(false, true);
      if (encryptSignature) p.add(new WSEncryptionPart("Signature", WSConstants.SIG_NS, "Element"));
      e.setParts(p);
      e.build(d, crypto("service"), h);
    }
    write(out, d);
  }
  static void symmetric(String out, boolean derive, boolean user) throws Exception {
    Document d = parse(ENV);
    WSSecHeader h = new WSSecHeader(); h.insertSecurityHeader(d);
    WSSecTimestamp ts = new WSSecTimestamp(); ts.setTimeToLive(300); ts.prepare(d);
    WSSecEncryptedKey k = new WSSecEncryptedKey();
    k.setUserInfo("service"); k.setKeyIdentifierType(WSConstants.THUMBPRINT_IDENTIFIER); k.setKeyEncAlgo(WSConstants.KEYTRANSPORT_RSAOEP);
    k.prepare(d, crypto("service"));
    ts.prependToHeader(h);
    if (derive) {
      WSSecDKSign s = new WSSecDKSign();
      s.setExternalKey(k.getEphemeralKey(), k.getId()); s.setSignatureAlgorithm(WSConstants.HMAC_SHA1); s.setParts(parts(true, true));
      s.setCustomValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
      s.build(d, h);
      WSSecDKEncrypt e = new WSSecDKEncrypt();
      e.setExternalKey(k.getEphemeralKey(), k.getId()); e.setSymmetricEncAlgorithm(WSConstants.AES_256); e.setDerivedKeyLength(32);
      e.setCustomValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
      e.setParts(parts(false, true)); e.build(d, h);
    } else {
      WSSecSignature s = new WSSecSignature();
      s.setKeyIdentifierType(WSConstants.CUSTOM_SYMM_SIGNING); s.setCustomTokenId(k.getId()); s.setCustomTokenValueType(WSConstants.WSS_ENC_KEY_VALUE_TYPE);
      s.setSecretKey(k.getEphemeralKey()); s.setSignatureAlgorithm(WSConstants.HMAC_SHA1); s.setParts(parts(true, true)); s.build(d, crypto("service"), h);
      WSSecEncrypt e = new WSSecEncrypt();
      e.setKeyIdentifierType(WSConstants.CUSTOM_KEY_IDENTIFIER); e.setCustomReferenceValue(Base64.getEncoder().encodeToString(java.security.MessageDigest.getInstance("SHA-1").digest(k.getEncryptedEphemeralKey()))); 
      e.setKeyIdentifierType(WSConstants.ENCRYPTED_KEY_SHA1_IDENTIFIER);
      e.setEphemeralKey(k.getEphemeralKey()); e.setEncryptSymmKey(false); e.setSymmetricEncAlgorithm(WSConstants.AES_128);
      e.setDocument(d); e.setParts(parts(false, true)); e.prepare(d, crypto("service"));
      Element refs = e.encryptForRef(null, parts(false, true)); e.addExternalRefElement(refs, h);
    }
    k.prependToHeader(h);
    write(out, d);
  }
  static void username(String out) throws Exception {
    Document d = parse(ENV);
    WSSecHeader h = new WSSecHeader(); h.insertSecurityHeader(d);
    WSSecUsernameToken u = new WSSecUsernameToken(); u.setUserInfo("anna", "secret"); u.setPasswordType(WSConstants.PASSWORD_DIGEST); u.build(d, h);
    write(out, d);
  }
  static void verify(String in, String request) throws Exception {
    Document d = parse(new String(Files.readAllBytes(Paths.get(in)), "UTF-8"));
    final Map<String, byte[]> secrets = new HashMap<String, byte[]>();
    WSSecurityEngine engine = new WSSecurityEngine();
    javax.security.auth.callback.CallbackHandler cb = new javax.security.auth.callback.CallbackHandler() { public void handle(javax.security.auth.callback.Callback[] cs) { for (Object c : cs) if (c instanceof WSPasswordCallback) ((WSPasswordCallback) c).setPassword("password"); } };
    List<WSSecurityEngineResult> r = engine.processSecurityHeader(d, null, cb, crypto("client"));
    StringBuilder b = new StringBuilder();
    for (WSSecurityEngineResult x : r) {
      b.append(x.get(WSSecurityEngineResult.TAG_ACTION)).append(' ');
      Object refs = x.get(WSSecurityEngineResult.TAG_DATA_REF_URIS);
      if (refs != null) for (Object o : (List) refs) b.append(((WSDataRef) o).getName()).append(' ');
    }
    System.out.println(in + ": " + b);
    StringWriter w = new StringWriter(); TransformerFactory.newInstance().newTransformer().transform(new DOMSource(d.getElementsByTagNameNS("http://schemas.xmlsoap.org/soap/envelope/", "Body").item(0)), new StreamResult(w)); System.out.println(w);
  }
  public static void main(String[] a) throws Exception {
    WSSConfig.init();
    if (a.length > 0 && a[0].equals("verify")) { for (int i = 1; i < a.length; i++) verify(a[i], null); return; }
    if (a.length > 0 && a[0].equals("fresh")) { asymmetric(a[1], WSConstants.BST_DIRECT_REFERENCE, WSConstants.THUMBPRINT_IDENTIFIER, WSConstants.RSA_SHA1, WSConstants.SHA1, WSConstants.AES_256, WSConstants.KEYTRANSPORT_RSAOEP, true, false); return; }
    String S256 = "http://www.w3.org/2001/04/xmlenc#sha256", R256 = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256";
    asymmetric("sign-encrypt-basic256.xml", WSConstants.BST_DIRECT_REFERENCE, WSConstants.THUMBPRINT_IDENTIFIER, WSConstants.RSA_SHA1, WSConstants.SHA1, WSConstants.AES_256, WSConstants.KEYTRANSPORT_RSAOEP, true, false);
    asymmetric("sign-encrypt-basic128sha256rsa15.xml", WSConstants.ISSUER_SERIAL, WSConstants.ISSUER_SERIAL, R256, S256, WSConstants.AES_128, WSConstants.KEYTRANSPORT_RSA15, true, false);
    asymmetric("sign-encrypt-signature-basic192.xml", WSConstants.SKI_KEY_IDENTIFIER, WSConstants.SKI_KEY_IDENTIFIER, WSConstants.RSA_SHA1, WSConstants.SHA1, WSConstants.AES_192, WSConstants.KEYTRANSPORT_RSAOEP, true, true);
    asymmetric("sign-encrypt-tripledes.xml", WSConstants.THUMBPRINT_IDENTIFIER, WSConstants.ISSUER_SERIAL, WSConstants.RSA_SHA1, WSConstants.SHA1, WSConstants.TRIPLE_DES, WSConstants.KEYTRANSPORT_RSAOEP, true, false);
    asymmetric("sign-basic256sha256.xml", WSConstants.X509_KEY_IDENTIFIER, 0, R256, S256, null, null, false, false);
    symmetric("symmetric-derived.xml", true, false);
    try { symmetric("symmetric.xml", false, false); } catch (Exception e) { e.printStackTrace(); }
    username("username-digest.xml");
  }
}
