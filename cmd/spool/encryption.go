package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spool-dev/spool/buffer/sqlite"
)

type encryptionSettings struct {
	Keys []keySettings `koanf:"keys" fixed:"true" help:"The first encrypts new runs, the others read what they have encrypted: put a new one in front, and take one out when spool doctor says that no run needs it. None: answers are stored in the clear."`
}

type keySettings struct {
	Name string `koanf:"name" help:"What the runs that it encrypts are marked with; letters, digits, dots, - and _."`
	Key  string `koanf:"key" secret:"true" help:"64 hexadecimal digits, as openssl rand -hex 32 prints; or else file, or env."`
	File string `koanf:"file" holds:"secret" help:"A file that holds the digits."`
	Env  string `koanf:"env" help:"A variable that holds them."`
}

// keys are the keys that the settings name. What is wrong with one is told without a digit of it.
func (e encryptionSettings) keys() ([]sqlite.Key, error) {
	var keys []sqlite.Key
	var wrong []error
	taken := map[string]bool{}
	for i, k := range e.Keys {
		key, err := k.read()
		if err == nil && taken[k.Name] {
			err = fmt.Errorf("name: %q is another key's already", k.Name)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("encryption.keys[%d].%w", i, err))
		}
		taken[k.Name] = true
		keys = append(keys, sqlite.Key{Name: k.Name, Bytes: key})
	}
	return keys, errors.Join(wrong...)
}

func (k keySettings) read() ([]byte, error) {
	if !isKeyName(k.Name) {
		return nil, fmt.Errorf("name: %q must be 1 to 64 letters, digits, dots, - or _", k.Name)
	}
	text, from, err := k.text()
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != sqlite.KeySize {
		return nil, fmt.Errorf("%s: must hold %d hexadecimal digits, as openssl rand -hex %d prints", from, 2*sqlite.KeySize, sqlite.KeySize)
	}
	return key, nil
}

// text is the digits, and the setting that they are from.
func (k keySettings) text() (text, from string, err error) {
	given := 0
	for _, v := range []string{k.Key, k.File, k.Env} {
		if v != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return "", "", errors.New("key: set exactly one of key, file and env")
	case k.Key != "":
		return k.Key, "key", nil
	case k.Env != "":
		text, ok := os.LookupEnv(k.Env)
		if !ok {
			return "", "", fmt.Errorf("env: the variable %s is not set", k.Env)
		}
		return text, "env", nil
	}
	b, err := os.ReadFile(k.File)
	if err != nil {
		return "", "", fmt.Errorf("file: %w", err)
	}
	return string(b), "file", nil
}

func isKeyName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return name != "" && len(name) <= 64 && strings.Trim(name, allowed) == ""
}

// keyed is a command that reads a data folder itself.
type keyed struct {
	Config string `env:"SPOOL_CONFIG" placeholder:"FILE" help:"The buffer's file, for its encryption.keys: without them what they have encrypted is not read."`
}

// keys are those of the file; none without one. Nothing else of it is looked at.
func (k keyed) keys() ([]sqlite.Key, error) {
	if k.Config == "" {
		return nil, nil
	}
	var s settings
	if err := readFile(k.Config, &s); err != nil {
		return nil, misuse{err}
	}
	keys, err := s.Encryption.keys()
	return keys, asMisuse(err)
}

// needed says which keys a folder or a copy of it cannot be read without; empty where there are none.
func needed(used map[string]int64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		all = append(all, fmt.Sprintf("%s (%d runs)", name, used[name]))
	}
	return strings.Join(all, ", ")
}

// missing are those of the used keys that are not among the given.
func missing(used map[string]int64, given []sqlite.Key) map[string]int64 {
	left := maps.Clone(used)
	for _, k := range given {
		delete(left, k.Name)
	}
	return left
}
