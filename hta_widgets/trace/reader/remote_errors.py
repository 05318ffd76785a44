"""What an error of a file system behind fsspec means: in words, with what to install, set or pass.

Drivers raise errors of their own, which are told apart by what they carry (a status of HTTP) and by the names
of their classes, since a driver that is not in use is not imported.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from hta_widgets.errors import AccessDeniedError, HtaWidgetsError, RemoteError, TraceNotFoundError

_DRIVERS = {
    "http": "aiohttp", "https": "aiohttp", "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs",
    "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs", "adl": "adlfs", "sftp": "paramiko", "ssh": "paramiko",
    "hf": "huggingface_hub", "smb": "smbprotocol", "oci": "ocifs", "oss": "ossfs", "hdfs": "pyarrow",
    "webhdfs": "requests", "github": "requests", "dbfs": "requests", "webdav": "webdav4", "box": "boxfs",
}  # fmt: skip
_CREDENTIALS = {
    "s3": "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; of a public bucket pass "
    "fsspec.open(url, anon=True).",
    "gs": "Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS; of a public "
    'bucket pass fsspec.open(url, token="anon").',
    "abfs": "Run `az login`, or set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY.",
    "http": "Pass what the server asks for: fsspec.open(url, headers={...}).",
}
_ALIKE = {"s3a": "s3", "gcs": "gs", "abfss": "abfs", "az": "abfs", "adl": "abfs", "https": "http"}
_NO_CREDENTIALS = {
    "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "TokenRetrievalError",
    "DefaultCredentialsError", "RefreshError", "ClientAuthenticationError", "CredentialUnavailableError",
    "ProfileNotFound", "NoAuthHandlerFound",
}  # fmt: skip
_UNKNOWN_HOST = {"gaierror", "ClientConnectorDNSError", "NameResolutionError"}
_SECRETS = re.compile(r"(?P<scheme>https?://)(?:[^/@]*@)?(?P<rest>[^?#]*)")
_CUT = {"ClientPayloadError", "ServerDisconnectedError", "IncompleteRead", "ConnectionResetError", "CutError"}
_DENIED = (401, 403)
_GONE = (404, 410)
_WORTH_ANOTHER_TRY = (408, 425, 429)


class StalledError(OSError):
    """No answer came for as long as is waited."""


class CutError(OSError):
    """A connection ended before the file did."""


def scheme_of(url: str) -> str:
    """`s3` of `s3://bucket/key`; of a chain of file systems that of the outermost."""
    return url.rpartition("::")[2].partition("://")[0].lower()


def shown(url: str) -> str:
    """A URL without what may be secret: user, password, and the query, which signs a URL."""
    found = _SECRETS.match(url)
    return f"{found['scheme']}{found['rest']}" if found else url


def library_error(error: Exception, url: str) -> HtaWidgetsError:
    """The error of the library for one that a file system raised."""
    if isinstance(error, HtaWidgetsError):
        return error
    url, scheme = shown(url), scheme_of(url)
    status = _status(error)
    names = _names(error)
    access = _CREDENTIALS.get(_ALIKE.get(scheme, scheme), "Pass an fsspec.open(url, ...) with credentials.")
    if isinstance(error, ImportError):
        driver = _DRIVERS.get(scheme)
        remedy = f"pip install {driver}" if driver else "Install what it names."
        return RemoteError(url, f"the driver for {scheme}:// is not installed ({error})", remedy)
    if _is_unknown_scheme(error):
        return RemoteError(url, f"fsspec knows no {scheme}://", "Check the beginning of the URL.")
    if names & _NO_CREDENTIALS:
        return RemoteError(url, f"there are no credentials for {scheme}://", access)
    if status in _DENIED:
        return AccessDeniedError(url, f"access is denied ({status})", access)
    if status in _GONE or (status is None and _is_missing(error)):
        return TraceNotFoundError(f"no such file or folder: {url}")
    if status is not None:
        return RemoteError(url, f"the server answers with status {status}", "Try again later.")
    if any(isinstance(each, PermissionError) for each in _chain(error)):
        return AccessDeniedError(url, "access is denied", access)
    if names & _UNKNOWN_HOST:
        return RemoteError(
            url, "there is no host of this name", "Check the URL, and whether a proxy is needed."
        )
    if _is_refused(error):
        return RemoteError(url, "the connection is refused", "Check host and port, and that the server runs.")
    if names & _CUT and not isinstance(error, CutError):
        error = CutError("the connection was cut")
    if isinstance(error, StalledError | CutError):
        return RemoteError(url, str(error), "Try again, or copy the files to this machine.")
    said = str(error).replace(url, "").strip(" :") or "no further words"
    return RemoteError(url, f"{type(error).__name__}: {said}", "")


def is_final(error: Exception, begun: bool) -> bool:
    """Whether trying again is no use; a connection that is refused is worth it where one was had before."""
    if isinstance(error, HtaWidgetsError | ImportError) or _is_unknown_scheme(error):
        return True
    if _names(error) & (_NO_CREDENTIALS | _UNKNOWN_HOST):
        return True
    status = _status(error)
    if status is not None:
        return status < 500 and status not in _WORTH_ANOTHER_TRY
    if _is_refused(error):
        return not begun
    return _is_missing(error) or any(isinstance(each, PermissionError) for each in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes: that of a driver says less than what it was raised from."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__ or getattr(error, "os_error", None)


def _status(error: Exception) -> int | None:
    """The status of HTTP that an error carries, under the names that drivers give it.

    aiohttp numbers answers that were cut like requests that were wrong.
    """
    if _names(error) & _CUT:
        return None
    for each in _chain(error):
        for name in ("status", "status_code", "code"):
            value = getattr(each, name, None)
            if isinstance(value, int) and 400 <= value < 600:
                return value
        response = getattr(each, "response", None)  # botocore's
        if isinstance(response, dict):
            value = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def _names(error: Exception) -> set[str]:
    return {kind.__name__ for each in _chain(error) for kind in type(each).__mro__}


def _is_refused(error: Exception) -> bool:
    for each in _chain(error):
        inner = getattr(each, "os_error", each)  # aiohttp's
        if getattr(inner, "errno", None) == errno.ECONNREFUSED:
            return True
    return False


def _is_unknown_scheme(error: Exception) -> bool:
    return isinstance(error, ValueError) and "Protocol not known" in str(error)


def _is_missing(error: Exception) -> bool:
    """Whether a file is not there, and not merely out of reach, which fsspec's HTTP tells the same way."""
    chain = list(_chain(error))
    reached = not any("Connect" in type(each).__name__ or isinstance(each, TimeoutError) for each in chain)
    return reached and any(isinstance(each, FileNotFoundError) for each in chain)
