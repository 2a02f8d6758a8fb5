import { defineConfig } from 'skein'

/**
 * Settings of `skein serve`, and some of `skein dev`. Each also has an environment variable, which wins
 * (`SKEIN_PORT`, `SKEIN_STORE`, …); keys and passwords belong there. `npx skein serve --check` says what is missing.
 */
export default defineConfig({
  port: 4111,
  // A database for several processes: npm install @skein/postgres
  // store: 'postgres://skein@db.example/skein?sslmode=verify-full',
})
