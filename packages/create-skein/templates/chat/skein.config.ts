import { defineConfig } from 'skein'
import { createTokens } from './server/tokens.ts'

const { TOKEN_SECRET } = process.env
const tokens = TOKEN_SECRET ? createTokens(TOKEN_SECRET) : undefined

/**
 * Settings of `skein serve`, and some of `skein dev`. Each also has an environment variable, which wins
 * (`SKEIN_PORT`, `SKEIN_STORE`, …); keys and passwords belong there. `npx skein serve --check` says what is missing.
 */
export default defineConfig({
  port: 4111,
  // server/main.ts passes requests on, and names the address of the browser.
  proxies: 1,
  // Who calls: the user of the token that the page got from server/main.ts. Users see their own threads.
  auth:
    tokens &&
    (async (request) => {
      const header = request.headers.get('authorization') ?? ''
      const user = await tokens.userOf(header.replace(/^Bearer /, ''), 'agents')
      if (user === undefined) return null
      return {
        tenant: 'default',
        user,
        scopes: ['threads:read', 'threads:write', 'approvals:write'],
      }
    }),
  // A database for several processes: npm install @skein/postgres
  // store: 'postgres://skein@db.example/skein?sslmode=verify-full',
})
