import type { NextConfig } from 'next'

/** Compression would hold words back until a block is full. */
const config: NextConfig = { compress: false, reactStrictMode: true }

export default config
