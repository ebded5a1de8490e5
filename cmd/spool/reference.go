package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fill gives every field that is zero the default of its tag.
func fill(v reflect.Value) error {
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		text := field.Tag.Get("default")
		var err error
		switch {
		case f.Kind() == reflect.Struct:
			err = fill(f)
		case text == "" || !f.IsZero() || f.Kind() == reflect.Pointer: // an absent pointer says it itself
		case f.Type() == reflect.TypeFor[time.Duration]():
			var d time.Duration
			d, err = time.ParseDuration(text)
			f.SetInt(int64(d))
		case f.CanInt():
			var n int64
			n, err = strconv.ParseInt(text, 10, 64)
			f.SetInt(n)
		case f.Kind() == reflect.String:
			f.SetString(text)
		}
		if err != nil {
			return fmt.Errorf("default of %s: %w", field.Name, err)
		}
	}
	return nil
}

// writer makes YAML of settings: of the values that they have or, as the reference, of the defaults
// with what every key means. What is secret is not shown.
type writer struct {
	reference bool
	out       strings.Builder
}

const (
	redacted = `"(redacted)"`
	restart  = " A change takes a restart."
)

// fields writes a struct's keys, each behind prefix.
func (w *writer) fields(v reflect.Value, prefix string) {
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		if w.reference {
			w.explain(field, prefix)
		}
		w.field(field, f, prefix)
	}
}

func (w *writer) explain(field reflect.StructField, prefix string) {
	text := field.Tag.Get("help")
	if field.Tag.Get("fixed") != "" {
		text += restart
	}
	if len(prefix) == 0 {
		w.line("")
	}
	w.line(prefix + "# " + text)
}

func (w *writer) line(text string) { w.out.WriteString(text + "\n") }

func (w *writer) field(field reflect.StructField, f reflect.Value, prefix string) {
	name := prefix + field.Tag.Get("koanf") + ":"
	hidden := field.Tag.Get("secret") != ""
	switch {
	case f.Kind() == reflect.Struct:
		w.line(name)
		w.fields(f, prefix+"  ")
	case f.Kind() == reflect.Map && w.reference:
		w.line(name + " {}")
		w.example(f.Type().Elem(), prefix, "NAME:", "  ")
	case f.Kind() == reflect.Slice && w.reference:
		w.line(name + " []")
		w.example(f.Type().Elem(), prefix, "-", "  ")
	case f.Kind() == reflect.Map:
		w.entries(name, f, prefix, hidden)
	case f.Kind() == reflect.Slice:
		w.items(name, f, prefix)
	case f.Kind() == reflect.Pointer && f.IsNil():
		w.absent(field, prefix)
	case hidden && !f.IsZero():
		w.line(name + " " + redacted)
	default:
		w.line(name + " " + scalar(reflect.Indirect(f)))
	}
}

// absent writes a key that is not set: its default where it has one.
func (w *writer) absent(field reflect.StructField, prefix string) {
	name, text := field.Tag.Get("koanf")+":", field.Tag.Get("default")
	if text == "" {
		w.line(prefix + "#" + name)
		return
	}
	w.line(prefix + name + " " + text)
}

// example shows, as a comment, what an entry of a map or a list looks like.
func (w *writer) example(of reflect.Type, prefix, begin, indent string) {
	if of.Kind() != reflect.Struct {
		return
	}
	inner := &writer{reference: true}
	v := reflect.New(of).Elem()
	inner.fields(v, indent)
	w.line(prefix + "#  " + begin)
	for line := range strings.Lines(inner.out.String()) {
		w.line(prefix + "#  " + strings.TrimSuffix(line, "\n"))
	}
}

// entries writes a map, by name.
func (w *writer) entries(name string, m reflect.Value, prefix string, hidden bool) {
	if m.Len() == 0 {
		w.line(name + " {}")
		return
	}
	w.line(name)
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		entry, v := prefix+"  "+scalar(key)+":", m.MapIndex(key)
		switch {
		case v.Kind() == reflect.Struct:
			w.line(entry)
			w.fields(v, prefix+"    ")
		case hidden:
			w.line(entry + " " + redacted)
		default:
			w.line(entry + " " + scalar(v))
		}
	}
}

// items writes a list.
func (w *writer) items(name string, list reflect.Value, prefix string) {
	if list.Len() == 0 {
		w.line(name + " []")
		return
	}
	w.line(name)
	for i := range list.Len() {
		v := list.Index(i)
		if v.Kind() != reflect.Struct {
			w.line(prefix + "  - " + scalar(v))
			continue
		}
		w.line(prefix + "  -")
		w.fields(v, prefix+"    ")
	}
}

// bareWord is a text that YAML reads as itself.
var bareWord = regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`)

// notTexts are plain words that YAML reads as something else.
var notTexts = []string{"true", "false", "yes", "no", "on", "off", "null", "y", "n"}

func scalar(v reflect.Value) string {
	if d, ok := v.Interface().(time.Duration); ok {
		return d.String()
	}
	if v.Kind() != reflect.String {
		return fmt.Sprint(v.Interface())
	}
	text := v.String()
	if bareWord.MatchString(text) && !slices.Contains(notTexts, text) {
		return text
	}
	quoted, _ := json.Marshal(text) // JSON's strings are YAML's; a string always has one
	return string(quoted)
}

// reference is the whole configuration with every key, its default and its meaning.
func reference() (string, error) {
	s := settings{}
	if err := fill(reflect.ValueOf(&s).Elem()); err != nil {
		return "", err
	}
	w := &writer{reference: true}
	w.line("# Every key of Spool's configuration, with its default. `spool config reference` prints it.")
	w.fields(reflect.ValueOf(s), "")
	return w.out.String(), nil
}

// effective is what the settings say, without what is secret.
func effective(s settings) string {
	w := &writer{}
	w.fields(reflect.ValueOf(s), "")
	return w.out.String()
}

// fixedChanges names the keys that differ and take a restart.
func fixedChanges(old, new settings) []string {
	return differing(reflect.ValueOf(old), reflect.ValueOf(new), "", false)
}

func differing(a, b reflect.Value, prefix string, fixed bool) (keys []string) {
	for i := range a.NumField() {
		field := a.Type().Field(i)
		name := prefix + field.Tag.Get("koanf")
		fixed := fixed || field.Tag.Get("fixed") != ""
		switch {
		case field.Type.Kind() == reflect.Struct:
			keys = append(keys, differing(a.Field(i), b.Field(i), name+".", fixed)...)
		case fixed && field.Type.Kind() == reflect.Map && a.Field(i).Len()+b.Field(i).Len() == 0:
		case fixed && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			keys = append(keys, name)
		}
	}
	return keys
}
