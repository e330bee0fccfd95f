// Package accesslog decides about requests that proxies log: what an entry says, what of it may be shown, which AccessLogRecord wants it,
// and which are kept. It is pure.
//
//	entry.go    a request as a proxy logged it
//	decode.go   entries from messages of Envoy's access log service
//	redact.go   what may be secret, and is never kept
//	record.go   AccessLogRecords: what they may ask for, and which requests they want
//	plan.go     AccessLogRecords of an Input: whose requests they log, and whether that works
//	room.go     which of very many records count
//	ring.go     the last entries, bounded
//	report.go   the entries that somebody asks for
//
// Who may write what: a proxy says anything about its own requests, and about those of no other. Nothing follows from an entry but what
// people are shown. The texts in entries are a caller's: they are cleaned of what acts on a terminal, and bounded.
package accesslog
