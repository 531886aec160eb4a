// Encrypts and decrypts with crypto11 under a new key of the nodes. usage: go run . MODULE TOKEN PIN
package main

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"log"
	"os"

	"github.com/ThalesGroup/crypto11"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: go run . MODULE TOKEN PIN")
	}
	context, err := crypto11.Configure(&crypto11.Config{Path: os.Args[1], TokenLabel: os.Args[2], Pin: os.Args[3]})
	check(err)
	defer context.Close()

	id := make([]byte, 8)
	_, err = rand.Read(id)
	check(err)
	key, err := context.GenerateSecretKeyWithLabel(id, []byte(fmt.Sprintf("go-%x", id)), 256, crypto11.CipherAES)
	check(err)
	defer func() { check(key.Delete()) }()
	found, err := context.FindKey(id, nil)
	check(err)
	if found == nil {
		log.Fatal("the key is not found")
	}

	aead, err := key.NewGCM()
	check(err)
	roundtrip(aead, []byte("a secret of go"))
	blocks(key)
	fmt.Println("go: the secrets came back")
}

func roundtrip(aead cipher.AEAD, secret []byte) {
	nonce := make([]byte, aead.NonceSize())
	_, err := rand.Read(nonce)
	check(err)
	sealed := aead.Seal(nil, nonce, secret, nil)
	opened, err := aead.Open(nil, nonce, sealed, nil)
	check(err)
	if !bytes.Equal(opened, secret) {
		log.Fatal("another text came back")
	}
}

func blocks(key *crypto11.SecretKey) {
	iv, secret := make([]byte, 16), bytes.Repeat([]byte("one whole block."), 2)
	_, err := rand.Read(iv)
	check(err)
	encrypter, err := key.NewCBCEncrypterCloser(iv)
	check(err)
	sealed := make([]byte, len(secret))
	encrypter.CryptBlocks(sealed, secret)
	encrypter.Close()
	decrypter, err := key.NewCBCDecrypterCloser(iv)
	check(err)
	opened := make([]byte, len(secret))
	decrypter.CryptBlocks(opened, sealed)
	decrypter.Close()
	if !bytes.Equal(opened, secret) {
		log.Fatal("other blocks came back")
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
