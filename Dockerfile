# One image for servers, parties and analysts. See docs/operations.md for what was tried without a Docker engine.
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev
COPY . /src
WORKDIR /src
RUN python -m venv /opt/fss
RUN /opt/fss/bin/pip install --constraint constraints.txt '.[all]'
RUN /opt/fss/bin/python -c "import fss; print(fss.backend())"

FROM python:3.12-slim
COPY --from=build /opt/fss /opt/fss
COPY examples /opt/fss/examples
ENV PATH=/opt/fss/bin:$PATH PYTHONDONTWRITEBYTECODE=1
RUN useradd --uid 10001 --no-create-home fss
USER fss
EXPOSE 8440 8441
ENTRYPOINT ["fss-server"]
CMD ["run", "--config", "/etc/fss/server.toml"]
