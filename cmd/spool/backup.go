package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/spool-dev/spool/buffer/sqlite"
)

type backupCmd struct {
	To   string `arg:"" placeholder:"FILE|DIR" help:"A file that does not exist, or a folder to hold spool.db and secret: one that exists, or a name that ends in /, which is made."`
	Data string `required:"" type:"path" env:"SPOOL_DATA" placeholder:"DIR" help:"The data folder, stopped or running."`
	keyed
	output
}

// kept is a backup, or a folder that was made of one.
type kept struct {
	sqlite.Copied
	Secret string `json:"secret,omitempty"` // its copy; empty where the folder has none
}

// tellKeys says without which keys the copy cannot be read, and what was not read now.
func (k kept) tellKeys(w io.Writer, given []sqlite.Key) {
	if len(k.Keys) > 0 {
		fmt.Fprintf(w, "encrypted: the copy has no key, and needs %s\n", needed(k.Keys))
	}
	if left := missing(k.Keys, given); len(left) > 0 {
		fmt.Fprintf(w, "not decrypted: what needs %s was copied and not read; --config names the file with encryption.keys\n", needed(left))
	}
}

// Run copies the log and the secret. Nothing that exists is written over; what is there under its name
// is whole, checked and on disk.
func (c backupCmd) Run(ctx context.Context, app *kong.Kong) error {
	log, secret, err := places(c.To)
	if err != nil {
		return err
	}
	from := filepath.Join(c.Data, secretName)
	if isThere(from) && isThere(secret) {
		return fmt.Errorf("backup %s: is there already", secret)
	}
	keys, err := c.keys()
	if err != nil {
		return err
	}
	unmake, err := makeFolder(filepath.Dir(log), strings.HasSuffix(c.To, "/"))
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	told, done := progress(app.Stderr, "backup", true)
	copied, err := sqlite.Backup(ctx, c.Data, log, told, keys...)
	done()
	if err != nil {
		unmake()
		return err
	}
	k := kept{Copied: copied}
	if k.Secret, err = copySecret(from, secret); err != nil {
		return fmt.Errorf("backup of the secret, while the log's is at %s: %w", log, err)
	}
	return c.print(app.Stdout, k, func(w io.Writer) {
		fmt.Fprintf(w, "ok: %s, %d bytes, %d runs (%d live), checked\n", k.File, k.Bytes, k.Runs, k.Live)
		k.tellKeys(w, keys)
		if k.Secret == "" {
			fmt.Fprintf(w, "no secret: %s has none. Keep the configured one: with another all callers are strangers to their runs\n", c.Data)
			return
		}
		fmt.Fprintf(w, "ok: %s; keep it as you keep keys\n", k.Secret)
	})
}

type restoreCmd struct {
	From string `arg:"" placeholder:"FILE|DIR" help:"What spool backup has made."`
	Data string `required:"" type:"path" env:"SPOOL_DATA" placeholder:"DIR" help:"The data folder to make: missing, or empty."`
	keyed
	output
}

// Run makes a data folder of a backup.
func (c restoreCmd) Run(ctx context.Context, app *kong.Kong) error {
	log, secret, err := places(c.From)
	if err != nil {
		return err
	}
	keys, err := c.keys()
	if err != nil {
		return err
	}
	told, done := progress(app.Stderr, "restore", true)
	copied, err := sqlite.Restore(ctx, log, c.Data, told, keys...)
	done()
	if err != nil {
		return err
	}
	k := kept{Copied: copied}
	if k.Secret, err = copySecret(secret, filepath.Join(c.Data, secretName)); err != nil {
		return fmt.Errorf("restore of the secret, while the log is at %s: %w", k.File, err)
	}
	return c.print(app.Stdout, k, func(w io.Writer) {
		fmt.Fprintf(w, "ok: %s, %d bytes, %d runs, checked\n", k.File, k.Bytes, k.Runs)
		k.tellKeys(w, keys)
		if k.Live > 0 {
			fmt.Fprintf(w, "%d of them were live: when the buffer starts they are interrupted, and what is stored of them stays readable\n", k.Live)
		}
		if k.Secret == "" {
			fmt.Fprintf(w, "no secret: the backup has none. Configure the old one, or all callers are strangers to their runs\n")
		}
	})
}

// makeFolder makes a folder, where it is asked to and there is none, for its owner's eyes only. unmake takes it away
// again, if it has made it and nothing is in it.
func makeFolder(path string, asked bool) (unmake func(), err error) {
	if !asked || isThere(path) {
		return func() {}, nil
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(path) }, flushFolder(filepath.Dir(path)) // one that is not empty stays
}

// places are where a backup has its log and its secret.
func places(path string) (log, secret string, err error) {
	info, err := os.Stat(path)
	folder := strings.HasSuffix(path, "/") || err == nil && info.IsDir()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	if folder {
		return filepath.Join(path, "spool.db"), filepath.Join(path, secretName), nil
	}
	return path, path + "." + secretName, nil
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// copySecret copies a secret, if there is one, for its owner's eyes only, and returns where it is.
func copySecret(from, to string) (string, error) {
	b, err := os.ReadFile(from)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if isThere(to) {
		return "", fmt.Errorf("%s: is there already", to)
	}
	return to, writeOnce(to, string(b))
}

type compactCmd struct {
	Data string `arg:"" type:"path" env:"SPOOL_DATA" help:"The data folder of a buffer that is stopped."`
	keyed
	output
}

// Run gives the room of what was deleted back to the file system.
func (c compactCmd) Run(ctx context.Context, app *kong.Kong) error {
	keys, err := c.keys()
	if err != nil {
		return err
	}
	told, done := progress(app.Stderr, "compact", true)
	made, err := sqlite.Compact(ctx, c.Data, told, keys...)
	done()
	if errors.Is(err, sqlite.ErrInUse) {
		return fmt.Errorf("%w: stop the buffer first; what was deleted is used again without compacting", err)
	}
	if err != nil {
		return err
	}
	return c.print(app.Stdout, made, func(w io.Writer) {
		fmt.Fprintf(w, "ok: %d bytes, %d before: %d given back\n", made.After, made.Before, made.Before-made.After)
	})
}
