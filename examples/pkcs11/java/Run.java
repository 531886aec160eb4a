// Encrypts and decrypts with SunPKCS11 under keys of the nodes. usage: java Run.java MODULE TOKEN-SLOT PIN
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.Security;
import java.util.Arrays;
import java.util.Collections;
import javax.crypto.Cipher;
import javax.crypto.KeyGenerator;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

public class Run {
    public static void main(String[] args) throws Exception {
        String module = args[0], slot = args[1];
        char[] pin = args[2].toCharArray();
        Path config = Files.createTempFile("polyclave", ".cfg");
        Files.writeString(config, "name = Polyclave\nlibrary = " + module + "\nslotListIndex = " + slot + "\n");
        Provider provider = Security.getProvider("SunPKCS11").configure(config.toString());
        Files.delete(config);

        KeyStore store = KeyStore.getInstance("PKCS11", provider);
        store.load(null, pin);
        System.out.println("keys of the token: " + Collections.list(store.aliases()));

        KeyGenerator generator = KeyGenerator.getInstance("AES", provider);
        generator.init(256);
        SecretKey key = generator.generateKey();
        if (key.getEncoded() != null) throw new AssertionError("the key was given away");

        byte[] secret = "a secret of java".getBytes(StandardCharsets.UTF_8);
        byte[] iv = new byte[12];
        new SecureRandom().nextBytes(iv);
        Cipher gcm = Cipher.getInstance("AES/GCM/NoPadding", provider);
        gcm.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(128, iv));
        gcm.updateAAD("header".getBytes(StandardCharsets.UTF_8));
        byte[] sealed = gcm.doFinal(secret);
        gcm.init(Cipher.DECRYPT_MODE, key, new GCMParameterSpec(128, iv));
        gcm.updateAAD("header".getBytes(StandardCharsets.UTF_8));
        if (!Arrays.equals(gcm.doFinal(sealed), secret)) throw new AssertionError("gcm");

        for (String mode : new String[] {"AES/CBC/PKCS5Padding", "AES/CTR/NoPadding"}) {
            Cipher cipher = Cipher.getInstance(mode, provider);
            byte[] initial = new byte[16];
            new SecureRandom().nextBytes(initial);
            cipher.init(Cipher.ENCRYPT_MODE, key, new IvParameterSpec(initial));
            sealed = cipher.doFinal(secret);
            cipher.init(Cipher.DECRYPT_MODE, key, new IvParameterSpec(initial));
            if (!Arrays.equals(cipher.doFinal(sealed), secret)) throw new AssertionError(mode);
        }

        // A key that stays, in the key store: an imported one, because the module copies no keys.
        String alias = "java-" + Long.toHexString(new SecureRandom().nextLong());
        byte[] value = new byte[16];
        new SecureRandom().nextBytes(value);
        store.setEntry(alias, new KeyStore.SecretKeyEntry(new SecretKeySpec(value, "AES")), new KeyStore.PasswordProtection(null));
        SecretKey stored = (SecretKey) store.getKey(alias, null);
        if (stored == null || stored.getEncoded() != null) throw new AssertionError("the key store gives " + stored);
        store.deleteEntry(alias);
        System.out.println("java: the secrets came back");
    }
}
