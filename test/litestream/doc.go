// Package litestream shows that Litestream follows the log of a running buffer: a module of its own,
// for Litestream's dependencies.
package litestream
