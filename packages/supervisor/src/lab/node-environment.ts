/**
 * How each node of a lab is configured: as in an installation (role-environment.ts), with what is different where a role is one of several and does not
 * live on loopback. This table is the one place that knows the differences.
 */
import { join } from 'node:path'
import { type Installation, paths } from '../installation.ts'
import { type RoleName, roleEnvironment } from '../role-environment.ts'
import { labPaths } from './paths.ts'
import { apiUrls, gatewayUrls, internalUrls, type LabNode, type LabPlan, names, PORTS } from './plan.ts'

type Environment = Readonly<Record<string, string>>

/** What the fake driver needs of a template is a name. */
const templatesOf = (plan: LabPlan): string => (plan.driver === 'fake' ? labPaths.templates(plan.home) : join(plan.cache, 'templates'))

/** One host never takes all of a small lab, and three that are equal show how work spreads. */
const CAPACITY = { SANDGLASS_CAPACITY_VCPU: '16', SANDGLASS_CAPACITY_MEMORY_MB: '16384', SANDGLASS_CAPACITY_DISK_GB: '256' } as const

const OWN: Readonly<Record<RoleName, (plan: LabPlan, node: LabNode) => Environment>> = {
  postgres: () => ({}),
  'control-plane': (plan) => {
    const database = plan.nodes.find((node) => node.kind === 'postgres')
    return {
      SANDGLASS_DATABASE_URL: `postgres://sandglass@${database?.address ?? ''}:${PORTS.postgres}/sandglass`,
      PGPASSFILE: labPaths.databasePassfile(plan.home),
      SANDGLASS_TEMPLATES_DIR: templatesOf(plan),
    }
  },
  gateway: (plan, node) => ({
    SANDGLASS_GATEWAY_NAME: node.name,
    SANDGLASS_IDENTITY_FILE: join(labPaths.node(plan.home, node.name), 'identity', 'identity.pem'),
    SANDGLASS_JOIN_TOKEN_FILE: paths.secret(plan.home, `${node.name}.join`),
  }),
  'host-agent': (plan, node) => ({
    SANDGLASS_HOST_NAME: node.name,
    SANDGLASS_RUN_DIR: labPaths.runDirectory(plan.home, node.name),
    SANDGLASS_JOIN_TOKEN_FILE: paths.secret(plan.home, `${node.name}.join`),
    SANDGLASS_HOST_STATE_DIR: join(labPaths.disk(plan.home, node.name), 'host'),
    SANDGLASS_DATA_PLANE_HOST: node.address,
    SANDGLASS_DATA_PLANE_PORT: String(PORTS.dataPlane),
    SANDGLASS_HOST_HEALTH_PORT: String(PORTS.hostHealth),
    SANDGLASS_TEMPLATES_DIR: templatesOf(plan),
    ...CAPACITY,
    ...(plan.driver === 'fake' ? { SANDGLASS_FAKE_DRIVER: '1', SANDGLASS_RUNSC: '/nonexistent/runsc' } : {}),
  }),
}

/** The installation as this node sees it. */
export function installationOfNode(plan: LabPlan, node: LabNode): Installation {
  return {
    id: names.installation(plan.id, node.name),
    home: plan.home,
    cache: plan.cache,
    code: plan.code,
    host: node.address,
    ports: { api: PORTS.api, gateway: PORTS.gateway, hostHealth: PORTS.hostHealth, internal: PORTS.internal },
    internalHost: node.address,
    internalUrl: internalUrls(plan),
    apiUrl: apiUrls(plan),
    gatewayUrl: gatewayUrls(plan),
  }
}

/**
 * @param outer of who started the lab: an operator's settings reach the roles as with `up`
 * @param extra wins over everything; for experiments and tests
 */
export function nodeEnvironment(plan: LabPlan, node: LabNode, outer: NodeJS.ProcessEnv, extra: Environment = {}): Environment {
  return { ...roleEnvironment(node.kind, installationOfNode(plan, node), outer), ...OWN[node.kind](plan, node), ...extra }
}
