/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps that hand packets off, by protocol.
 */
#include "netinet/in_handoff.h"

#include "netinet/in_family.h"

bool in_handoff_any;
static in_handoff_t *steps[256][HANDOFF_STEPS];	/* [I] after boot */

void
in_handoff_set(uint8_t proto, enum in_handoff_step step, in_handoff_t *take)
{
	steps[proto][step] = take;
	in_handoff_any = true;
}

bool
in_handoff_has(uint8_t proto, enum in_handoff_step step)
{
	return (steps[proto][step] != NULL);
}

/* From this step on. */
static void
pass(unsigned step, struct mbuf *m)
{
	const uint8_t proto = m->m_pkthdr.upper_proto;
	const unsigned hlen = m->m_pkthdr.upper_off;

	for (; step < HANDOFF_STEPS; step++)
		if (steps[proto][step] != NULL && steps[proto][step](m, hlen))
			return;
	in_packetfamily(m)->af_protoinput(proto)(m, hlen);
}

void
in_handoff(uint8_t proto, struct mbuf *m, unsigned hlen)
{
	m->m_pkthdr.upper_proto = proto;
	m->m_pkthdr.upper_off = (uint16_t)hlen;
	pass(0, m);
}

void
in_handoff_resume(enum in_handoff_step step, struct mbuf *m)
{
	pass(step + 1, m);
}
