package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Whatever must not be seen makes a configuration that others can read worth a word; and whatever need not, does not.
func TestDoctor_ConfigThatOthersCanRead(t *testing.T) {
	for text, holds := range map[string]bool{
		"secret: a-secret-of-thirty-two-characters":                        true,
		"previous_secret: a-secret-of-thirty-two-characters":               true,
		"admin: {key: a-key-of-sixteen-or-more}":                           true,
		"auth: {keys: {agent: a-key-of-sixteen-or-more}}":                  true,
		"telemetry: {headers: {authorization: x}}":                         true,
		"providers: {openai: {key: x}}":                                    true,
		"encryption: {keys: [{name: k, key: '" + aKeyOfEncryption + "'}]}": true,

		"ttl: 1h":                                    false,
		"auth: {keys: {}}":                           false,
		"providers: {openai: {concurrency: 1}}":      false,
		"encryption: {keys: [{name: k, env: HOME}]}": false,
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		for mode, told := range map[os.FileMode]bool{0o600: false, 0o640: holds, 0o604: holds, 0o622: holds} {
			write(t, path, text, mode)
			set, err := (&serveCmd{Config: path, Secret: "another-secret-that-is-in-no-file"}).load()
			all := fmt.Sprint(configFindings(path, set, err))
			if strings.Contains(all, "config.yaml holds keys, and others can read it") != told {
				t.Errorf("%s, mode %04o: %s", text, mode, all)
			}
		}
	}
}

const aKeyOfEncryption = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// Each file that a setting names and that must not be seen is looked at; with the mistakes of a configuration too.
func TestDoctor_FilesThatOthersCanRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	cert, key := pemPair(t, 1)
	set := settings{
		TLS:        tlsSettings{Cert: at("cert"), Key: at("key")},
		Store:      storeSettings{URL: "nats://127.0.0.1:1", Credentials: at("creds"), CA: at("cert"), Cert: at("cert"), Key: at("storekey")},
		Encryption: encryptionSettings{Keys: []keySettings{{Name: "a", Env: "A"}, {Name: "b", File: at("b")}}},
	}
	write(t, at("cert"), string(cert), 0o644)
	secret := map[string]string{"tls.key": "key", "store.credentials": "creds", "store.key": "storekey", "encryption.keys[1].file": "b"}
	for mistake, err := range map[string]error{"none": nil, "a mistake": os.ErrInvalid} {
		for told, name := range secret {
			for _, other := range secret {
				write(t, at(other), string(key), 0o600)
			}
			if all := fmt.Sprint(secretFindings("", set)); all != "[]" {
				t.Errorf("nothing is open: %s", all)
			}
			write(t, at(name), string(key), 0o640)
			want := told + ": others can read " + at(name) + " (mode 0640): chmod 600"
			if all := fmt.Sprint(configFindings("", set, err)); strings.Count(all, "others can read") != 1 || !strings.Contains(all, want) {
				t.Errorf("%s: %s lacks %s", mistake, all, want)
			}
			if err := os.Remove(at(name)); err != nil {
				t.Fatal(err)
			}
			if all := fmt.Sprint(configFindings("", set, err)); !strings.Contains(all, told+": open "+at(name)) {
				t.Errorf("%s is missing: %s", at(name), all)
			}
		}
	}
}

// A setting that names a file says whether that must not be seen: one that is new is not forgotten.
func TestDoctor_KnowsOfEachFileWhetherItHoldsSecrets(t *testing.T) {
	public := map[string]bool{"tls.cert": true, "store.ca": true, "store.cert": true}
	var look func(t reflect.Type, key string) []string
	look = func(of reflect.Type, key string) (unknown []string) {
		switch of.Kind() {
		case reflect.Map, reflect.Slice:
			return look(of.Elem(), key)
		case reflect.Struct:
		default:
			return nil
		}
		for f := range of.Fields() {
			name := key + f.Tag.Get("koanf")
			help := strings.ToLower(f.Tag.Get("help"))
			isFile := strings.Contains(help, "pem") || strings.Contains(help, "file") || strings.Contains(help, "certificate") || strings.Contains(help, "private key")
			if f.Type.Kind() == reflect.String && isFile && f.Tag.Get("holds") == "" && f.Tag.Get("secret") == "" && !public[name] {
				unknown = append(unknown, name)
			}
			unknown = append(unknown, look(f.Type, name+".")...)
		}
		return unknown
	}
	if unknown := look(reflect.TypeFor[settings](), ""); len(unknown) > 0 {
		t.Errorf("%q name files: are they secret?", unknown)
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
