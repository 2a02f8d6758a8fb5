/**
 * `npm run page`: the page in production. Start `npm start` (the agents) next to it. Both read TOKEN_SECRET from .env or
 * from the environment.
 */
import { existsSync } from 'node:fs'
import { createPageServer } from './page-server.ts'
import { createTokens } from './tokens.ts'
import { openUsers } from './users.ts'

if (existsSync('.env')) process.loadEnvFile('.env')
const {
  TOKEN_SECRET = '',
  USERS_FILE = '.skein/users.json',
  AGENTS_URL = 'http://127.0.0.1:4111',
  HOST = '127.0.0.1',
  PORT = '3000',
} = process.env

const server = createPageServer({
  folder: 'dist',
  agents: AGENTS_URL,
  tokens: createTokens(TOKEN_SECRET),
  users: openUsers(USERS_FILE),
})
server.listen(Number(PORT), HOST, () => {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : PORT
  console.log(`page    http://${HOST}:${port}/`)
})
// Answers that are being streamed end with the connection; the page gets the rest when it opens again.
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    server.close()
    server.closeAllConnections()
  })
