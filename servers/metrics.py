"""What operators can watch, in Prometheus's form. Counts, durations, and how long certificate and disk will do."""

import shutil

from prometheus_client import Counter, Gauge, Histogram

from fss_ecdf.campaign.errors import problems
from servers.settings import Settings

UPLOADS = Counter("fss_uploads_total", "Uploads stored")
REJECTED = Counter("fss_rejected_total", "Uploads that did not pass the check of keys")
REFUSALS = Counter("fss_refusals_total", "Requests or uploads refused", ["code"])
EVALUATION_SECONDS = Histogram("fss_evaluation_seconds", "Evaluations of points from the keys")
CURVE_SECONDS = Histogram("fss_curve_seconds", "Evaluations of whole curves", buckets=(1, 5, 15, 60, 300, 1800, 7200))
REQUEST_SECONDS = Histogram("fss_request_seconds", "Requests", ["route", "status"])
PEER_FAILURES = Counter("fss_peer_failures_total", "Calls to the other server that failed")
CERTIFICATE_ENDS = Gauge(
    "fss_certificate_not_after_seconds", "When the certificate that is shown ends, in seconds of 1970"
)
ON_HOLD = Gauge("fss_on_hold", "1 while this server's database is older than what it did, until its operator decides")
PEER_ROLLED_BACK = Gauge("fss_peer_rolled_back", "1 while the other server's database is older than what it showed")
STATES = ("open", "frozen", "checking", "sealed")
PHASES = ("waiting", "writing keys", "checking", "waiting for the other server", "evaluating", "ready", "failed")
WAVES = Gauge("fss_waves", "Waves of all campaigns, a plain campaign being one, by state", ["state"])
JOBS = Gauge("fss_jobs", "Background jobs by phase", ["phase"])
EXCLUDED = Gauge("fss_excluded", "Unmatched and rejected uploads that are kept until the operator discards them")
TROUBLE_SECONDS = Gauge("fss_trouble_seconds", "How long the oldest of what does not go on lasts; 0: none", ["what"])
DISK_FREE = Gauge("fss_disk_free_bytes", "Room on the disk of the database")


for _kind in problems():  # an alert sees the first event only of what was 0 before it
    REFUSALS.labels(_kind.code)


def look(settings: Settings) -> None:
    """What is looked at whenever somebody asks."""
    DISK_FREE.set(shutil.disk_usage(settings.data).free)
