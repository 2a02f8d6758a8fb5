/** Replaces `platform-node.ts` on platforms other than Node. */
export const isServer: boolean = false
