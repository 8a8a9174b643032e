//go:build !unix

package acp

const nonblock = 0
