// How the client gets in where the suite's servers are protected, and the user that it needs for that.

/** What the suite knows as this program; nobody fetches it. */
const DOCUMENT = "https://conformance-test.local/client-metadata.json";
/** Nothing listens there. */
const CALLBACK = "http://localhost:3000/callback";

/** Consents to everything at once. */
function user() {
  let back;
  return {
    redirectUri: CALLBACK,
    callback() {
      return new Promise((resolve) => {
        back = resolve;
      });
    },
    async browser(url) {
      // Without following the redirect: it leads to nobody.
      const answer = await fetch(url, { redirect: "manual" });
      const location = answer.headers.get("location");
      if (location === null) throw new Error(`the authorization page: HTTP ${answer.status}, and no way back`);
      back(location);
    },
    store: "memory",
  };
}

/** How the client gets its tokens, by what the scenario gives it. */
function credentials(scenario, given) {
  const { client_id: clientId, client_secret: clientSecret } = given;
  switch (scenario) {
    case "auth/client-credentials-basic":
      return { grant: "client_credentials", clientId, clientSecret };
    case "auth/client-credentials-jwt": {
      const { private_key_pem: privateKey, signing_algorithm: signingAlgorithm } = given;
      return { grant: "client_credentials", clientId, privateKey, signingAlgorithm };
    }
    case "auth/enterprise-managed-authorization": {
      const identity = {
        tokenEndpoint: given.idp_token_endpoint,
        clientId: given.idp_client_id,
        token: given.idp_id_token,
      };
      return { clientId, clientSecret, identity };
    }
    case "auth/wif-jwt-bearer":
      return { grant: "jwt_bearer", clientId, assertion: given.valid_jwt };
    case "auth/pre-registration":
      return { clientId, clientSecret };
    default:
      return { clientMetadataUrl: DOCUMENT, dpop: scenario.startsWith("auth/dpop") };
  }
}

/** The option `auth` that a scenario is to be passed with. */
export function auth(scenario, given) {
  return { ...credentials(scenario, given), ...user() };
}
