"""A real tool server over HTTP where a person signs in. It is its own authorization server, which says yes, or no
if its argument is `no`. Says its port, then serves.
"""

import secrets
import socket
import sys
import time

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    IdentityAssertionParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

LASTS_S = 3600


class People:
    """As `OAuthAuthorizationServerProvider`: one person, who has the page open. asked: pages; renewed: tokens."""

    def __init__(self, says_yes: bool) -> None:
        self._says_yes = says_yes
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}
        self.asked = self.renewed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.asked += 1
        back = str(params.redirect_uri)
        if not self._says_yes:
            return construct_redirect_uri(back, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_hex(8),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        found = self._codes.get(authorization_code)
        return found if found is not None and found.client_id == client.client_id else None

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._tokens(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        found = self._refresh.get(refresh_token)
        return found if found is not None and found.client_id == client.client_id else None

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.renewed += 1
        del self._refresh[refresh_token.token]
        return self._tokens(client, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self._access.get(token)

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        raise NotImplementedError  # nobody asks for it

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self._access.pop(token.token, None)
        self._refresh.pop(token.token, None)

    def _tokens(self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_hex(8), secrets.token_hex(8)
        whose = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        self._access[access] = AccessToken(token=access, expires_at=int(time.time()) + LASTS_S, **whose)
        self._refresh[refresh] = RefreshToken(token=refresh, **whose)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LASTS_S, scope=" ".join(scopes))


def main() -> None:
    people = People(says_yes="no" not in sys.argv)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        place = f"http://127.0.0.1:{port}"
        server = MCPServer(
            "oauth",
            auth_server_provider=people,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(place),
                resource_server_url=AnyHttpUrl(f"{place}/mcp"),
                validate_token_resource=True,
                client_registration_options=ClientRegistrationOptions(enabled=True),
            ),
        )

        @server.tool()
        def counts() -> str:
            """How often the person was asked, and how often tokens were renewed."""
            return f"{people.asked} {people.renewed}"

        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run([listening])


if __name__ == "__main__":
    main()
