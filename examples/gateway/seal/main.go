// The code of Vault's transit seal (go-kms-wrapping), on the gateway: encrypts and decrypts what would be a root key.
//
//	VAULT_ADDR=http://127.0.0.1:8200 VAULT_TOKEN=.. go run . KEY
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	wrapping "github.com/hashicorp/go-kms-wrapping/v2"
	"github.com/hashicorp/go-kms-wrapping/wrappers/transit/v2"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("seal: the root key came back")
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: %s KEY", os.Args[0])
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seal := transit.NewWrapper()
	// Address and token are those of the environment. The gateway's tokens do not end, so there is nothing to renew.
	settings := map[string]string{"mount_path": "transit/", "key_name": os.Args[1], "disable_renewal": "true"}
	if _, err := seal.SetConfig(ctx, wrapping.WithConfigMap(settings)); err != nil {
		return err
	}
	root := []byte("a root key of 32 bytes, no more.")
	sealed, err := seal.Encrypt(ctx, root)
	if err != nil {
		return err
	}
	opened, err := seal.Decrypt(ctx, sealed)
	if err != nil {
		return err
	}
	if !bytes.Equal(opened, root) || bytes.Contains(sealed.Ciphertext, root) {
		return fmt.Errorf("another root key came back")
	}
	return nil
}
