package main

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// levelOf is the level that log_level names.
func levelOf(text string) (zapcore.Level, error) {
	l, err := zapcore.ParseLevel(text)
	if err != nil {
		return l, fmt.Errorf("log_level: %q is none of debug, info, warn, error", text)
	}
	return l, nil
}

// newLogger writes what level lets through, now and whenever it is changed.
func newLogger(level zap.AtomicLevel) (*zap.Logger, error) {
	cfg := zap.NewProductionConfig()
	cfg.Level = level
	cfg.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	cfg.EncoderConfig.TimeKey = "time"
	cfg.DisableStacktrace = true
	cfg.Sampling = nil
	return cfg.Build()
}
