export { defineConfig, type SkeinConfig } from './config/config.ts'
export { main } from './main.ts'
