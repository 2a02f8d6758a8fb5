/** The wire formats by name. */
export type WireName =
  'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'google-generate' | 'ollama-chat'
