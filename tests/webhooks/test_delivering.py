"""Webhooks are sorted, signed, sent in order, tried again, given up, and told only to who may read."""

import base64
import contextlib
import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from make.accounts import account
from muniment.accounts.models import Account
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.webhooks import delivering, endpoints, events
from muniment.webhooks.endpoints import Wanted, create_endpoint
from muniment.webhooks.models import Delivery, Endpoint, Event, Place

pytestmark = pytest.mark.django_db
