package main

import (
	"fmt"
	"os"
	"reflect"
	"syscall"
)

// secretFindings look at the files that hold what must not be seen: the configuration, where it does, and those
// that it names.
func secretFindings(path string, set settings) (all []finding) {
	var own settings // what the file itself says: variables and flags are elsewhere
	if path != "" && readFile(path, &own) == nil && holdsSecrets(reflect.ValueOf(own)) {
		if mode, open := othersRead(path); open {
			all = append(all, found(warn, "config", "%s holds keys, and others can read it (mode %04o): chmod 600", path, mode))
		}
	}
	for _, f := range secretFiles(reflect.ValueOf(set), "") {
		mode, open := othersRead(f.path)
		if open {
			all = append(all, found(warn, "config", "%s: others can read %s (mode %04o): chmod 600", f.key, f.path, mode))
		}
		if err := readable(f.path); err != nil {
			all = append(all, found(fail, "config", "%s: %v", f.key, err))
		}
	}
	return all
}

// othersRead reports whether a file can be read, or written, by more than who must. Where it is another user's,
// as root's credentials in a container are, its group is by what this process reads it.
func othersRead(path string) (mode os.FileMode, open bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	others := os.FileMode(0o077)
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		others = 0o007
	}
	mode = info.Mode().Perm()
	return mode, mode&others != 0
}

func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// holdsSecrets reports whether any setting that must not be seen is set.
func holdsSecrets(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f, secret := v.Field(i), v.Type().Field(i).Tag.Get("secret") != ""
			isSet := !f.IsZero() && (f.Kind() != reflect.Map || f.Len() > 0)
			if secret && isSet || holdsSecrets(f) {
				return true
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if holdsSecrets(v.MapIndex(key)) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if holdsSecrets(v.Index(i)) {
				return true
			}
		}
	}
	return false
}

// secretFile is a file that a setting names.
type secretFile struct{ key, path string }

// secretFiles are those of the settings whose tag says that what they name must not be seen.
func secretFiles(v reflect.Value, key string) (all []secretFile) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field, f := v.Type().Field(i), v.Field(i)
			name := key + field.Tag.Get("koanf")
			if field.Tag.Get("holds") == "secret" && f.String() != "" {
				all = append(all, secretFile{name, f.String()})
			}
			all = append(all, secretFiles(f, name+".")...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, secretFiles(v.Index(i), fmt.Sprintf("%s[%d].", key[:len(key)-1], i))...)
		}
	}
	return all
}
