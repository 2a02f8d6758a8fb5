import type { JsonObject } from '@skein/base'
import { readCredentialFile } from '#credential-files'
import type { Fetch } from '../contract/provider.ts'
import { environment } from '../transport/keys.ts'
import type { AwsKeys } from './aws-signature.ts'
import { askForJson, askForText, credentialError } from './credential-request.ts'
import type { Expiring } from './expiring.ts'
import { parseIni } from './ini.ts'

/** Credentials of AWS. Without `expiresAt` (milliseconds since the epoch) they do not end. */
export interface AwsCredentials extends AwsKeys, Expiring {}

/** Where credentials come from. */
export interface AwsCredentialSource {
  /** A profile of `~/.aws/credentials` and `~/.aws/config`, on Node. Default: `AWS_PROFILE`, or `default`. */
  readonly profile?: string | undefined
  readonly fetch: Fetch
}

const PROVIDER = 'bedrock'

/**
 * Finds credentials as the SDKs of AWS do: in the environment, as a web identity, in the profile, from the container,
 * from the instance. A profile that is named goes before the environment.
 */
export async function findAwsCredentials(source: AwsCredentialSource): Promise<AwsCredentials> {
  const { profile } = source
  const found =
    (profile === undefined ? fromEnvironment() : undefined) ??
    (profile === undefined ? await fromWebIdentity(source) : undefined) ??
    (await fromProfile(profile ?? environment('AWS_PROFILE') ?? 'default')) ??
    (profile === undefined ? await fromContainer(source) : undefined) ??
    (profile === undefined ? await fromInstance(source) : undefined)
  if (found) return found
  throw credentialError(
    PROVIDER,
    profile === undefined ? 'no source has any.' : `the profile "${profile}" has none.`,
    'Set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass credentials to bedrockWith().',
  )
}

/** The region that the environment names. */
export function regionOfEnvironment(): string | undefined {
  return environment('AWS_REGION') ?? environment('AWS_DEFAULT_REGION')
}

function fromEnvironment(): AwsCredentials | undefined {
  const accessKeyId = environment('AWS_ACCESS_KEY_ID')
  const secretAccessKey = environment('AWS_SECRET_ACCESS_KEY')
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: environment('AWS_SESSION_TOKEN') }
}

/** Exchanges the token of a file, e.g. of Kubernetes, for the credentials of a role. */
async function fromWebIdentity({
  fetch,
}: AwsCredentialSource): Promise<AwsCredentials | undefined> {
  const file = environment('AWS_WEB_IDENTITY_TOKEN_FILE')
  const role = environment('AWS_ROLE_ARN')
  if (file === undefined || role === undefined) return undefined
  const token = await readCredentialFile(file)
  if (token === undefined)
    throw credentialError(PROVIDER, 'the file of AWS_WEB_IDENTITY_TOKEN_FILE does not exist.')
  const region = regionOfEnvironment()
  const host = region === undefined ? 'sts.amazonaws.com' : `sts.${region}.amazonaws.com`
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: role,
    RoleSessionName: environment('AWS_ROLE_SESSION_NAME') ?? 'skein',
    WebIdentityToken: token.trim(),
  })
  const url = environment('AWS_ENDPOINT_URL_STS') ?? `https://${host}/`
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const init = { method: 'POST', headers, body: body.toString() }
  const xml = await askForText({ provider: PROVIDER, source: 'AWS STS', url, init, fetch })
  const field = (name: string): string | undefined =>
    new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return credentialsOf(
    {
      AccessKeyId: field('AccessKeyId') ?? null,
      SecretAccessKey: field('SecretAccessKey') ?? null,
      Token: field('SessionToken') ?? null,
      Expiration: field('Expiration') ?? null,
    },
    'AWS STS',
  )
}

async function fromProfile(name: string): Promise<AwsCredentials | undefined> {
  const profile = await profileOf(name)
  if (!profile) return undefined
  const { aws_access_key_id: id, aws_secret_access_key: secret } = profile
  // A profile with a role is used as that role, which may have fewer rights than its keys.
  if (id !== undefined && secret !== undefined && profile['role_arn'] === undefined)
    return { accessKeyId: id, secretAccessKey: secret, sessionToken: profile['aws_session_token'] }
  const other = ['sso_session', 'sso_start_url', 'role_arn', 'credential_process'].find(
    (field) => profile[field] !== undefined,
  )
  if (other === undefined) return undefined
  throw credentialError(
    PROVIDER,
    `the profile "${name}" has ${other}, which is not read here.`,
    'Pass bedrockWith({ credentials }) a function that asks the AWS SDK, e.g. fromNodeProviderChain().',
  )
}

async function profileOf(name: string): Promise<Readonly<Record<string, string>> | undefined> {
  const [credentials, config] = await Promise.all([
    readCredentialFile(environment('AWS_SHARED_CREDENTIALS_FILE') ?? '~/.aws/credentials'),
    readCredentialFile(environment('AWS_CONFIG_FILE') ?? '~/.aws/config'),
  ])
  const ofConfig = parseIni(config ?? '')[name === 'default' ? name : `profile ${name}`]
  const ofCredentials = parseIni(credentials ?? '')[name]
  return ofConfig || ofCredentials ? { ...ofConfig, ...ofCredentials } : undefined
}

/** The hosts at which a container may ask for credentials without encryption: its own, and those of ECS and EKS. */
const nearHosts = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|169\.254\.170\.(2|23)|\[fd00:ec2::23\])$/

async function fromContainer({ fetch }: AwsCredentialSource): Promise<AwsCredentials | undefined> {
  const relative = environment('AWS_CONTAINER_CREDENTIALS_RELATIVE_URI')
  const full = environment('AWS_CONTAINER_CREDENTIALS_FULL_URI')
  if (relative === undefined && full === undefined) return undefined
  const url = relative === undefined ? full! : `http://169.254.170.2${relative}`
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : new URL('none://none')
  if (protocol !== 'https:' && !(protocol === 'http:' && nearHosts.test(hostname)))
    throw credentialError(PROVIDER, 'AWS_CONTAINER_CREDENTIALS_FULL_URI is neither HTTPS nor near.')
  const file = environment('AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE')
  const token =
    file === undefined
      ? environment('AWS_CONTAINER_AUTHORIZATION_TOKEN')
      : (await readCredentialFile(file))?.trim()
  const headers: Record<string, string> = token === undefined ? {} : { authorization: token }
  const source = 'the container service'
  const answer = await askForJson({ provider: PROVIDER, source, url, init: { headers }, fetch })
  return credentialsOf(answer, source)
}

/** Where there is no instance, nothing answers at all. */
const INSTANCE_MS = 1000

/** Asks the instance for the credentials of its role, with a token (IMDSv2). */
async function fromInstance({ fetch }: AwsCredentialSource): Promise<AwsCredentials | undefined> {
  if (environment('AWS_EC2_METADATA_DISABLED')?.toLowerCase() === 'true') return undefined
  const base = environment('AWS_EC2_METADATA_SERVICE_ENDPOINT') ?? 'http://169.254.169.254'
  const source = 'the instance metadata service'
  const ask = { provider: PROVIDER, source, fetch } as const
  let token: string
  try {
    const init = { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' } }
    const url = new URL('/latest/api/token', base).href
    token = await askForText({ ...ask, url, init, limitMs: INSTANCE_MS })
  } catch {
    return undefined // this is no instance
  }
  const init = { headers: { 'x-aws-ec2-metadata-token': token.trim() } }
  const roles = new URL('/latest/meta-data/iam/security-credentials/', base).href
  const [role = ''] = (await askForText({ ...ask, url: roles, init })).trim().split('\n')
  const url = roles + encodeURIComponent(role.trim())
  return credentialsOf(await askForJson({ ...ask, url, init }), source)
}

/** Reads the answer of a service of AWS. */
function credentialsOf(answer: JsonObject, source: string): AwsCredentials {
  const { AccessKeyId, SecretAccessKey, Token, Expiration } = answer
  if (typeof AccessKeyId !== 'string' || typeof SecretAccessKey !== 'string')
    throw credentialError(PROVIDER, `${source} answered without keys.`)
  const expiresAt = typeof Expiration === 'string' ? Date.parse(Expiration) : Number.NaN
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    sessionToken: typeof Token === 'string' ? Token : undefined,
    expiresAt: Number.isNaN(expiresAt) ? undefined : expiresAt,
  }
}
