/**
 * True where programs serve many calls at once. Code that only makes calls cheaper is behind it, so that it is
 * left out of bundles for browsers and workers, where the size of a program counts more.
 */
export const isServer: boolean = true
