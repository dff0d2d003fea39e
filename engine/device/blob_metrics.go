package device

import "sync/atomic"

// BlobMetrics are counts since the tier was opened.
type BlobMetrics struct {
	Uploads           int64 // segments written
	UploadedBytes     int64
	Skipped           int64 // uploads that found their segment there
	Reads             int64
	ReadBytes         int64
	Removes           int64
	Retries           int64 // attempts that failed and were repeated
	Failures          int64 // calls that failed for good
	ManifestReplaces  int64
	ManifestConflicts int64
}

type blobMetrics struct {
	uploads, uploadedBytes, skipped     atomic.Int64
	reads, readBytes, removes           atomic.Int64
	retries, failures                   atomic.Int64
	manifestReplaces, manifestConflicts atomic.Int64
}

// Metrics reads the counts, each for itself.
func (b *Blob) Metrics() BlobMetrics {
	m := &b.metrics
	return BlobMetrics{
		Uploads: m.uploads.Load(), UploadedBytes: m.uploadedBytes.Load(), Skipped: m.skipped.Load(),
		Reads: m.reads.Load(), ReadBytes: m.readBytes.Load(), Removes: m.removes.Load(),
		Retries: m.retries.Load(), Failures: m.failures.Load(),
		ManifestReplaces: m.manifestReplaces.Load(), ManifestConflicts: m.manifestConflicts.Load(),
	}
}
