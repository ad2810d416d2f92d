/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages of sendmsg() and recvmsg(): building, truncating and
 * iterating (cmsg(3)).
 */
#include <errno.h>
#include <string.h>

#include "kern/socketvar.h"

void
socontrol_add(struct socontrol *sc, int level, int type, const void *data,
    size_t len)
{
	struct msghdr msg = { .msg_control = sc->sc_buf };

	KASSERT(sc->sc_len + CMSG_SPACE(len) <= sizeof(sc->sc_buf),
	    ("socontrol_add: %zu bytes after %zu", len, sc->sc_len));
	/* padding is zeroed, so that equal messages compare equal */
	memset(sc->sc_buf + sc->sc_len, 0, CMSG_SPACE(len));
	socontrol_put(&msg, sizeof(sc->sc_buf), &sc->sc_len, level, type,
	    data, len);
}

void
socontrol_put(struct msghdr *msg, size_t room, size_t *used, int level,
    int type, const void *data, size_t len)
{
	struct cmsghdr cm = {
		.cmsg_len = CMSG_LEN(len), .cmsg_level = level,
		.cmsg_type = type
	};
	size_t left = room - *used;
	char *at;

	if (left < sizeof(cm)) {
		msg->msg_flags |= MSG_CTRUNC;
		return;
	}
	if (cm.cmsg_len > left) {
		msg->msg_flags |= MSG_CTRUNC;
		cm.cmsg_len = left;
	}
	at = (char *)msg->msg_control + *used;
	memcpy(at, &cm, sizeof(cm));
	memcpy(at + sizeof(cm), data, cm.cmsg_len - sizeof(cm));
	*used += left < CMSG_SPACE(len) ? left : CMSG_SPACE(len);
}

const struct cmsghdr *
socontrol_next(const struct msghdr *msg, const struct cmsghdr *cm, int *error)
{
	const char *start = msg->msg_control;
	size_t at = 0;

	*error = 0;
	if (start == NULL)
		return (NULL);
	/* its length was checked before it was returned */
	if (cm != NULL)
		at = (size_t)((const char *)cm - start) +
		    CMSG_ALIGN(cm->cmsg_len);
	if (at > msg->msg_controllen ||
	    msg->msg_controllen - at < sizeof(*cm))
		return (NULL);
	cm = (const struct cmsghdr *)(const void *)(start + at);
	if (cm->cmsg_len < sizeof(*cm) ||
	    cm->cmsg_len > msg->msg_controllen - at) {
		*error = EINVAL;
		return (NULL);
	}
	return (cm);
}

nsec_t
socontrol_deliver(struct msghdr *msg, struct socontrol *control)
{
	const size_t room = msg->msg_control != NULL ? msg->msg_controllen : 0;
	struct msghdr all = {
		.msg_control = control->sc_buf,
		.msg_controllen = control->sc_len
	};
	const struct cmsghdr *cm = NULL;
	nsec_t stamp = 0;
	size_t used = 0;
	int error;

	while ((cm = socontrol_next(&all, cm, &error)) != NULL)
		if (cm->cmsg_level == SOCONTROL_INTERNAL)
			memcpy(&stamp, CMSG_DATA(cm), sizeof(stamp));
		else
			socontrol_put(msg, room, &used, cm->cmsg_level,
			    cm->cmsg_type, CMSG_DATA(cm),
			    cm->cmsg_len - CMSG_LEN(0));
	msg->msg_controllen = used;
	return (stamp);
}
