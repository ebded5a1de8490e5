package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// secretName is the secret's name in a data folder.
	secretName = "secret"
	// minSecret is how many characters one needs: who guesses it makes run tokens, and confirms guesses of
	// credentials by their hashes.
	minSecret = 32
)

// checkSecret refuses a configured secret that is too short to be one; none is empty.
func checkSecret(key, text string) error {
	if text != "" && len(strings.TrimSpace(text)) < minSecret {
		return fmt.Errorf("%s: must be at least %d characters, as openssl rand -hex 32 prints them", key, minSecret)
	}
	return nil
}

// loadSecret is the configured secret, or the one in the data folder, which is made once.
func loadSecret(s settings) ([]byte, error) {
	if s.Secret != "" {
		return []byte(s.Secret), nil
	}
	path := filepath.Join(s.Data, secretName)
	b, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(b))) >= minSecret {
		return []byte(strings.TrimSpace(string(b))), nil
	}
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("secret %s: not readable, or shorter than %d characters", path, minSecret)
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails since Go 1.24
	text := hex.EncodeToString(random)
	if err := writeOnce(path, text+"\n"); err != nil {
		return nil, fmt.Errorf("secret %s: %w", path, err)
	}
	return []byte(text), nil
}

// writeOnce makes a file whole or not at all: a crash in between leaves a file of another name.
func writeOnce(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return flushFolder(filepath.Dir(path))
}

// flushFolder makes the names in a folder last.
func flushFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
