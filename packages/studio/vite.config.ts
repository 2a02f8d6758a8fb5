import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import type { Plugin, UserConfig } from 'vite'

/**
 * Puts `theme.js` into the head as a script that runs before the first paint, so that a theme that the person
 * has chosen is there without a flash. Module scripts run later, and the policy of the page forbids inline ones.
 */
function themeFirst(): Plugin {
  const source = readFileSync(`${import.meta.dirname}/src/theme.js`, 'utf8')
  const fileName = `assets/theme-${createHash('sha256').update(source).digest('hex').slice(0, 8)}.js`
  return {
    name: 'theme-first',
    apply: 'build',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName, source })
    },
    transformIndexHtml: () => [
      { tag: 'script', attrs: { src: `./${fileName}` }, injectTo: 'head-prepend' },
    ],
  }
}

// The page is built from source, as everything in this repository; `base` is relative, because the page may be
// served under any prefix.
const config: UserConfig = defineConfig({
  root: `${import.meta.dirname}/src`,
  base: './',
  publicDir: false,
  cacheDir: `${import.meta.dirname}/.cache/vite`,
  plugins: [react(), themeFirst()],
  resolve: { conditions: ['@skein/source', 'browser', 'module', 'import', 'default'] },
  build: {
    target: 'es2023',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    outDir: '../dist/page',
    emptyOutDir: true,
    // The policy of the page allows `data:` addresses for images only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
})

export default config
