"""What operators can watch, in Prometheus's form. Counts and durations only."""

from prometheus_client import Counter, Histogram

UPLOADS = Counter("fss_uploads_total", "Uploads stored")
REJECTED = Counter("fss_rejected_total", "Uploads that did not pass the check of keys")
REFUSALS = Counter("fss_refusals_total", "Requests or uploads refused", ["code"])
EVALUATION_SECONDS = Histogram("fss_evaluation_seconds", "Evaluations of points from the keys")
CURVE_SECONDS = Histogram("fss_curve_seconds", "Evaluations of whole curves", buckets=(1, 5, 15, 60, 300, 1800, 7200))
REQUEST_SECONDS = Histogram("fss_request_seconds", "Requests", ["route", "status"])
PEER_FAILURES = Counter("fss_peer_failures_total", "Calls to the other server that failed")
