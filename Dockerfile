# One image for servers, parties and analysts. `make containers` builds and runs it; docs/operations.md says more.
ARG BASE=python:3.12-slim
FROM ${BASE} AS build
ENV PIP_RETRIES=10 PIP_DEFAULT_TIMEOUT=60
RUN command -v cc >/dev/null || { apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev; }
RUN python -m venv /opt/fss
# What ours needs, without ours: a layer that changes with the pins only.
COPY pyproject.toml constraints.txt README.md LICENSE /src/
WORKDIR /src
RUN /opt/fss/bin/pip install --constraint constraints.txt '.[all,postgres,cluster]'
COPY . /src
RUN /opt/fss/bin/pip install --no-deps --force-reinstall .
RUN /opt/fss/bin/python -c "import fss; print(fss.backend())"

FROM ${BASE}
COPY --from=build /opt/fss /opt/fss
COPY examples /opt/fss/examples
ENV PATH=/opt/fss/bin:$PATH PYTHONDONTWRITEBYTECODE=1
RUN useradd --uid 10001 --no-create-home fss
USER fss
EXPOSE 8440 8441
ENTRYPOINT ["fss-server"]
CMD ["run", "--config", "/etc/fss/server.toml"]
