package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// readFile merges a YAML file into s. What is wrong in it is told by its key, and by no value: that may
// be a secret.
func readFile(path string, s *settings) error {
	k := koanf.New("\x00") // keys are not split: a provider's name may hold a dot
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		return fmt.Errorf("config %s: %w", path, err)
	}
	_, err := decode(k, s, fits)
	wrong := complaints(err)
	// Of what holds a value that does not fit, the decoder tells no keys: they are looked for without it.
	others, err := decode(k, &settings{}, passes)
	if err != nil {
		return fmt.Errorf("config %s: %w", path, err)
	}
	for _, key := range others {
		wrong = append(wrong, unknown(dotted(key)))
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("config %s:\n%s", path, strings.Join(wrong, "\n"))
}

// unknown says of a key that there is none, and which there are in its place.
func unknown(key string) string {
	var path []string
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		path = strings.Split(key[:i], ".")
	}
	names := keysAt(reflect.TypeFor[settings](), path)
	if names == nil {
		return key + ": no such key"
	}
	return fmt.Sprintf("%s: no such key; there are %s", key, strings.Join(names, ", "))
}

// index is the place of an entry in a list, at the end of its key.
var index = regexp.MustCompile(`\[\d+\]$`)

// keysAt are the keys that the settings have below a path; nil where that leads to none.
func keysAt(t reflect.Type, path []string) (names []string) {
	switch {
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct: // the name of an entry is the user's, and may hold dots
		for n := 1; n <= len(path) && names == nil; n++ {
			names = keysAt(t.Elem(), path[n:])
		}
		return names
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return keysAt(t.Elem(), path)
	case t.Kind() != reflect.Struct:
		return nil
	}
	for f := range t.Fields() {
		name := f.Tag.Get("koanf")
		if len(path) > 0 && name == index.ReplaceAllString(path[0], "") {
			return keysAt(f.Type, path[1:])
		}
		names = append(names, name)
	}
	if len(path) > 0 {
		return nil
	}
	return names
}

// decode reads the file into s, and returns the keys that are no setting's.
func decode(k *koanf.Koanf, s *settings, hook mapstructure.DecodeHookFuncType) (others []string, err error) {
	var read mapstructure.Metadata
	err = k.UnmarshalWithConf("", s, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: s, TagName: "koanf", Metadata: &read, DecodeHook: hook,
	}})
	return read.Unused, err
}

// joined is an error that is several.
type joined interface {
	error
	Unwrap() []error
}

// complaints are the findings of the decoder, each with the key that it is about.
func complaints(err error) (found []string) {
	if e, ok := errors.AsType[joined](err); ok {
		for _, one := range e.Unwrap() {
			found = append(found, complaints(one)...)
		}
		return found
	}
	if e, ok := errors.AsType[*mapstructure.DecodeError](err); ok {
		return []string{dotted(e.Name()) + ": " + e.Unwrap().Error()}
	}
	if err != nil {
		found = append(found, err.Error())
	}
	return found
}

// inBrackets is how the decoder writes a key of a map: providers[mine].
var inBrackets = regexp.MustCompile(`\[([^\]]*[^\]\d][^\]]*)\]`)

// dotted is a key as this program writes it everywhere: providers.mine, fallbacks[0].
func dotted(key string) string { return inBrackets.ReplaceAllString(key, ".$1") }

// fits refuses a value of another kind than the setting's, in the file's own words, and reads durations.
func fits(from, to reflect.Type, value any) (any, error) {
	if to == reflect.TypeFor[time.Duration]() {
		return duration(value)
	}
	for to.Kind() == reflect.Pointer {
		to = to.Elem()
	}
	want, is := "", false
	switch to.Kind() {
	case reflect.Struct, reflect.Map:
		want, is = "keys with values", from.Kind() == reflect.Map || from == to
	case reflect.Slice:
		want, is = "a list", from.Kind() == reflect.Slice
	case reflect.String:
		want, is = "a text", from.Kind() == reflect.String
	case reflect.Bool:
		want, is = "true or false", from.Kind() == reflect.Bool
	case reflect.Int, reflect.Int64:
		want, is = "a whole number", from.Kind() == reflect.Int
	case reflect.Float64:
		want, is = "a number", from.Kind() == reflect.Int || from.Kind() == reflect.Float64
	default:
		return value, nil
	}
	if !is {
		return nil, errors.New("must be " + want)
	}
	return value, nil
}

// passes is fits with nothing in the place of what does not.
func passes(from, to reflect.Type, value any) (any, error) {
	v, err := fits(from, to, value)
	if err != nil {
		return reflect.Zero(to).Interface(), nil
	}
	return v, nil
}

// duration reads one. A bare number is none: nobody means nanoseconds.
func duration(value any) (any, error) {
	if value == 0 {
		return time.Duration(0), nil
	}
	text, _ := value.(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, errors.New("must be a duration with its unit, such as 30s or 5m")
	}
	return d, nil
}
