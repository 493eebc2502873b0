// An authorization server with the package oidc-provider: `node authorization_server.mjs NODE_MODULES OPTIONS`.
//
// OPTIONS is JSON: `lifetime_s` of access tokens, whether it `registers` programs, and `clients` that it knows. It prints its URL when it
// serves, and ends with its stdin. `/accepts?token=…` tells a server whether it may answer a request with that token.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, options] = [process.argv[2], JSON.parse(process.argv[3])];
const resolved = createRequire(`${modules}/`).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(resolved));

const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: options.clients,
  pkce: { required: () => true },
  issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
  rotateRefreshToken: true,
  ttl: { AccessToken: options.lifetime_s, RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 600 },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: options.registers },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: "",
        audience: resource,
        accessTokenFormat: "opaque",
        accessTokenTTL: options.lifetime_s,
      }),
      useGrantedResource: () => true,
    },
  },
});
provider.use(async (context, next) => {
  if (context.path !== "/accepts") return next();
  const token = await provider.AccessToken.find(String(context.query.token));
  context.status = 200;
  context.body = { accepts: Boolean(token?.isValid), audience: token?.aud ?? null };
});

server.on("request", provider.callback());
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
console.log(issuer);
