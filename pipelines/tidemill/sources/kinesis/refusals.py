"""What Kinesis refuses, and what is said of it: where, what was found, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemill.errors import InputError, QueryError, SourceError, TidemillError

_BUSY = {
    "ProvisionedThroughputExceededException",
    "LimitExceededException",
    "ThrottlingException",
    "KMSThrottlingException",
    "InternalFailure",
    "InternalFailureException",
    "ServiceUnavailable",
}
_IDENTITY = {
    "UnrecognizedClientException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "IncompleteSignature",
    "MissingAuthenticationToken",
    "ExpiredTokenException",
    "ExpiredToken",
}
_DENIED = {"AccessDeniedException", "AccessDenied", "KMSAccessDeniedException"}


class IteratorExpired(Exception):
    """A shard iterator is older than five minutes: another one is asked for, nobody sees this."""


@dataclass(frozen=True)
class StreamAddress:
    """Which stream: its name, its region (None: as boto3 finds it), and another endpoint than
    AWS's, such as an interface endpoint of a VPC or a test server."""

    stream: str
    region: str | None = None
    endpoint: str | None = None


def may_pass(error: Exception) -> bool:
    """Return whether the same call may succeed later: throttled, or no answer."""
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return _code(error) in _BUSY or status >= 500
    return isinstance(error, (ConnectionError, HTTPClientError))


def given_up(
    error: Exception, address: StreamAddress, operation: str, patience: float
) -> SourceError:
    """Return the error of a call that was tried for `patience` seconds."""
    from botocore.exceptions import ClientError

    if isinstance(error, ClientError):
        found = f"{operation} was refused for {patience:.0f} s: {_code(error)}"
        expected = "fewer readers of this stream, or more shards; running again goes on from here"
    else:
        found = f"does not answer {operation} within {patience:.0f} s ({error})"
        expected = "a network that reaches Kinesis in this region, or its endpoint_url"
    return SourceError(found, where=place_of(address), expected=expected)


def explained_refusal(error: Exception, address: StreamAddress, operation: str) -> Exception:
    """Return one of our errors for what boto3 raised."""
    from botocore.exceptions import ClientError, CredentialRetrievalError, NoCredentialsError

    place = place_of(address)
    if isinstance(error, (NoCredentialsError, CredentialRetrievalError)):
        expected = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role"
        return InputError("no AWS credentials were found", where=place, expected=expected)
    if not isinstance(error, ClientError):
        return error
    if _code(error) == "ExpiredIteratorException":
        return IteratorExpired(str(error))
    return _refused(error, place, operation)


def _refused(error: Any, place: str, operation: str) -> TidemillError:
    code = _code(error)
    if code == "ResourceNotFoundException":
        expected = "the name of a stream in this region and account (aws kinesis list-streams)"
        return InputError("there is no such stream, or shard", where=place, expected=expected)
    if code in _IDENTITY:
        expected = "valid credentials: aws sts get-caller-identity says whose they are"
        return InputError(f"AWS refuses the credentials ({code})", where=place, expected=expected)
    if code in _DENIED:
        action = "".join(word.capitalize() for word in operation.split("_"))
        expected = f"a policy that allows kinesis:{action} on this stream"
        return InputError(f"{operation} is not allowed ({code})", where=place, expected=expected)
    message = error.response.get("Error", {}).get("Message", "")
    return QueryError(f"{operation} failed: {code}: {message}", where=place)


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def place_of(address: StreamAddress) -> str:
    """Return the stream as errors name it."""
    region = f" in {address.region}" if address.region else ""
    at = f" at {address.endpoint}" if address.endpoint else ""
    return f"stream {address.stream}{region}{at}"
