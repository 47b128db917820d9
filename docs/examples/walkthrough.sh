#!/bin/sh
# A campaign from its creation to its report, against two servers that run: walkthrough.sh FOLDER, where FOLDER is what
# `fss-server init-pair` made. Operator, party and analyst are three organisations; here one script plays all of them.
set -eu
pair=$1
examples=$(dirname "$0")
export FSS_OPERATOR_CONFIG="$pair/operator.toml" MPLCONFIGDIR="${TMPDIR:-/tmp}/matplotlib"

cp "$examples/risk-score.toml" "$pair/campaign.toml"
fss-server campaign create "$pair/campaign.toml"
. "$pair/campaign.env"
fss-dealer upload --file "$examples/risk-scores.csv" --column score --stratum-column outcome --yes \
  --receipt "$pair/receipt.json"
fss-server campaign seal "$FSS_CAMPAIGN_ID"

FSS_ANALYST_TOKEN=$(cat "$pair/server0/analyst.token")
export FSS_ANALYST_TOKEN
fss-analyst quantile --stratum event
fss-analyst roc --json >"$pair/roc.json"
fss-analyst report --out "$pair/report.html"
