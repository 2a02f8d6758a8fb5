/** Hosts of model vendors. Their requests are answered from a script or a recording and are no effects. */
const MODEL_HOSTS = [
  'api.openai.com',
  'api.anthropic.com',
  'generativelanguage.googleapis.com',
  'api.groq.com',
  'api.x.ai',
  'api.deepseek.com',
  'api.mistral.ai',
  'api.cerebras.ai',
  'api.moonshot.ai',
  'api.moonshot.cn',
  'api.together.xyz',
  'api.fireworks.ai',
  'openrouter.ai',
  'ai-gateway.vercel.sh',
  'localhost:11434',
  '127.0.0.1:11434',
]

const MODEL_DOMAINS = ['.openai.azure.com', '-aiplatform.googleapis.com']

/** Keys that programs want to see before they call a model. */
const KEY_VARIABLES = [
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'GOOGLE_API_KEY',
  'GEMINI_API_KEY',
  'GOOGLE_GENERATIVE_AI_API_KEY',
  'GROQ_API_KEY',
  'XAI_API_KEY',
  'DEEPSEEK_API_KEY',
  'MISTRAL_API_KEY',
  'OPENROUTER_API_KEY',
]

/** Requests that report to a service, at times of their own. They are no steps of a program, and are answered with 204. */
export const REPORTING: readonly string[] = [
  'https://api.openai.com/v1/traces/ingest',
  'https://*.posthog.com/*',
  'https://api.smith.langchain.com/*',
  'https://*.sentry.io/*',
]

/** Whether a host, with its port if it has one, serves models. */
export function isModelHost(host: string, more: readonly string[]): boolean {
  return (
    MODEL_HOSTS.includes(host) ||
    more.includes(host) ||
    MODEL_DOMAINS.some((domain) => host.endsWith(domain))
  )
}

/** A placeholder for each key that is not set: a program without a key ends before it calls anything. */
export function placeholderKeys(env: NodeJS.ProcessEnv): Record<string, string> {
  const missing = KEY_VARIABLES.filter((name) => (env[name] ?? '') === '')
  return Object.fromEntries(missing.map((name) => [name, 'crashtest']))
}
